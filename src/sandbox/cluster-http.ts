/**
 * The simulated cluster's JSON-RPC over HTTP, with the bodies, batches and errors of the real one.
 *
 * Every JSON-RPC error has HTTP status 200. Integers beyond 2^53 are written as integers, which
 * JSON allows and `JSON.stringify` does not do.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { callMethod, type RpcContext, RpcFault } from "./cluster-rpc.ts";
import { SANDBOX_RPC_BODY_BYTES_MAX } from "./limits.ts";

/** A server that is not listening yet. */
export function createRpcServer(context: RpcContext, example: Example | null = null): Server {
  return createServer((request, response) => {
    if (request.method === "GET" && request.url === EXAMPLE_PATH) {
      respondExample(example?.() ?? null, response);
      return;
    }
    handle(context, request, response);
  });
}

/** A new signed transaction, ready to send; null while there is none. */
export type Example = () => Uint8Array | null;

/** Not a method of a real cluster: for snippets that work as pasted. */
export const EXAMPLE_PATH = "/example-transaction";

function respondExample(bytes: Uint8Array | null, response: ServerResponse): void {
  if (bytes === null) {
    respond(response, 404, "text/plain", "There is no example here\n");
    return;
  }
  response.writeHead(200, {
    "content-type": "application/octet-stream",
    "content-length": bytes.length,
    "cache-control": "no-store",
  });
  response.end(bytes);
}

function handle(context: RpcContext, request: IncomingMessage, response: ServerResponse): void {
  if (request.method === "GET" && request.url === "/health") {
    respond(response, 200, "text/plain", "ok");
    return;
  }
  if (request.method !== "POST") {
    const text = "Used HTTP Method is not allowed. POST or OPTIONS is required\n";
    respond(response, 405, "text/plain", text);
    return;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= SANDBOX_RPC_BODY_BYTES_MAX) chunks.push(chunk);
  });
  request.on("end", () => {
    if (size > SANDBOX_RPC_BODY_BYTES_MAX) {
      respond(response, 413, "text/plain", "Payload too large\n");
      return;
    }
    const responseBody = responseText(context, Buffer.concat(chunks).toString("utf8"));
    respond(response, 200, "application/json; charset=utf-8", `${responseBody}\n`);
  });
  // The client disconnected during the request; no response is possible.
  request.on("error", () => response.destroy());
}

function respond(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
  response.end(body);
}

/** The response to a body: a single call or a batch. */
export function responseText(context: RpcContext, body: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    // The client receives it in the form of every other error.
    return toJson(errorOf(null, -32700, "Parse error"));
  }
  if (!Array.isArray(parsed)) return toJson(respondToCall(context, parsed));
  if (parsed.length === 0) return toJson(errorOf(null, -32600, "Invalid request"));
  return toJson(parsed.map((call) => respondToCall(context, call)));
}

/** The response to one parsed call. */
export function respondToCall(context: RpcContext, call: unknown): unknown {
  if (typeof call !== "object" || call === null) return errorOf(null, -32600, "Invalid request");
  const id = "id" in call ? call.id : null;
  const method = "method" in call ? call.method : undefined;
  const params = "params" in call && call.params !== null ? (call.params ?? []) : [];
  if (typeof method !== "string") return errorOf(id, -32600, "Invalid request");
  if (!Array.isArray(params)) return errorOf(id, -32602, "Invalid params: expected an array");
  try {
    return { jsonrpc: "2.0", result: callMethod(context, method, params), id };
  } catch (error) {
    if (error instanceof RpcFault) return errorOf(id, error.code, error.message);
    throw error;
  }
}

export function errorOf(id: unknown, code: number, message: string): unknown {
  return { jsonrpc: "2.0", error: { code, message }, id };
}

/** JSON with bigints as integers: marks them first and removes the marks afterwards. */
export function toJson(value: unknown): string {
  const marked = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === "bigint" ? `\u0000${each}` : each,
  );
  return marked.replaceAll(/"\\u0000(\d+)"/g, "$1");
}
