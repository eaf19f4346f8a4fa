/**
 * JSON-RPC calls to a node, singly or in a batch.
 *
 * A node that rejects batches but responds to single calls receives single calls from then on.
 * Note: results are read without a validating library, because validating a leader schedule takes
 * 480 ms where parsing takes 5 ms.
 *
 * Decision: docs/decisions/0025-own-json-rpc-client.md
 */

import { STATUS_CODES } from "node:http";
import type { RpcHttpClient, RpcHttpResponse } from "./http-client.ts";
import { isRecord } from "./responses.ts";

export interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An error returned by the node itself. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  /** JSON-RPC error code; 0 if absent. */
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** The code of a method that the node does not know; JSON-RPC 2.0. */
export const METHOD_NOT_FOUND = -32601;

/**
 * Whether the same call may succeed later: its rate is limited, or the node has an internal error
 * or one of its own, as when it is behind. Gateways refuse a method with several other codes.
 */
export function isTemporary({ code }: RpcError): boolean {
  const isOwn = code <= SERVER_ERROR_FIRST && code >= SERVER_ERROR_LAST;
  return isOwn || code === INTERNAL_ERROR || RATE_LIMIT_CODES.has(code);
}

/** Result of one call of a batch. */
export type CallResult = { readonly result: unknown } | { readonly error: Error };

export interface Caller {
  /** Returns the result; rejects with the node's error or the transport's. */
  call(method: string, params: readonly unknown[]): Promise<unknown>;
  /** Returns one result per call; rejects if there is no response to the batch. */
  batch(calls: readonly Call[]): Promise<readonly CallResult[]>;
}

export function createCaller(httpClient: Pick<RpcHttpClient, "post">): Caller {
  let supportsBatches = true;

  async function call(method: string, params: readonly unknown[]): Promise<unknown> {
    const body = parsed(method, await httpClient.post(textOf({ method, params }, ID)));
    if (isRecord(body) && "result" in body && body["id"] !== ID) {
      throw new Error(`${method}: the answer is to something else`);
    }
    return resultOf(method, body);
  }

  async function one({ method, params }: Call): Promise<CallResult> {
    try {
      return { result: await call(method, params) };
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)) };
    }
  }

  return {
    call,
    async batch(calls) {
      if (supportsBatches) {
        const response = await httpClient.post(`[${calls.map(textOf).join(",")}]`);
        const results = resultsOf(calls, response);
        if (results !== null) return results;
      }
      const results = await Promise.all(calls.map(one));
      if (results.some(hasResult)) {
        supportsBatches = false;
        return results;
      }
      // Without any result the node is unreachable, as it would be for the batch.
      const [failure] = results;
      if (failure !== undefined && "error" in failure) throw failure.error;
      return results;
    },
  };
}

function textOf({ method, params }: Call, index: number): string {
  return JSON.stringify({ jsonrpc: "2.0", id: index, method, params });
}

const hasResult = (each: CallResult): boolean => "result" in each;

/** Null if the node rejects batches. Rate limits and temporary errors are thrown. */
function resultsOf(
  calls: readonly Call[],
  response: RpcHttpResponse,
): readonly CallResult[] | null {
  const [first = { method: "batch" }] = calls;
  const { status } = response;
  if (status === TOO_MANY_REQUESTS || status >= SERVER_FAULT) throw statusError("batch", response);
  let body: unknown;
  try {
    body = parsed(first.method, response);
  } catch {
    // A text page from a gateway that supports single calls only.
    return null;
  }
  const answers: readonly unknown[] = Array.isArray(body) ? body : [];
  const results = resultsById(calls, answers);
  if (results.some(hasResult)) return results;
  // Every call failed, perhaps because of the batch itself. After a rate limit the caller must not
  // send single calls, which would exceed it further.
  for (const each of [body, ...answers]) {
    const error = isRecord(each) ? errorOf("batch", each["error"]) : null;
    if (error !== null && RATE_LIMIT_CODES.has(error.code)) throw error;
  }
  return null;
}

function resultsById(calls: readonly Call[], answers: readonly unknown[]): readonly CallResult[] {
  const results: CallResult[] = calls.map(({ method }) => ({
    error: new Error(`${method}: no answer in the batch`),
  }));
  for (const each of answers) {
    const index = isRecord(each) ? each["id"] : null;
    if (typeof index !== "number") continue;
    const call = calls[index];
    if (call === undefined) continue;
    try {
      results[index] = { result: resultOf(call.method, each) };
    } catch (error) {
      results[index] = { error: error instanceof Error ? error : new Error(String(error)) };
    }
  }
  return results;
}

/** The response's JSON. Gateways report JSON-RPC errors with statuses other than 200, too. */
function parsed(method: string, response: RpcHttpResponse): unknown {
  const isOk = response.status >= 200 && response.status < 300;
  try {
    const body: unknown = JSON.parse(response.body.toString("utf8"));
    if (isOk || (isRecord(body) && isRecord(body["error"]))) return body;
  } catch (cause) {
    if (isOk) throw new Error(`${method}: the answer is no JSON`, { cause });
  }
  throw statusError(method, response);
}

function statusError(method: string, { status }: RpcHttpResponse): Error {
  return new Error(`${method}: HTTP ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd());
}

function resultOf(method: string, response: unknown): unknown {
  if (!isRecord(response)) throw new Error(`${method}: the answer is no JSON-RPC`);
  const { error } = response;
  // Some nodes send a null result along with an error.
  if ("result" in response && !isRecord(error)) return response["result"];
  throw errorOf(method, error);
}

function errorOf(method: string, error: unknown): RpcError {
  const code = isRecord(error) && typeof error["code"] === "number" ? error["code"] : 0;
  // Gateways report a wrong key or an exhausted quota as a plain string.
  const word = typeof error === "string" && error !== "" ? error : "no result";
  const message = isRecord(error) ? String(error["message"] ?? "an error without a word") : word;
  return new RpcError(code, `${method}: ${message}`);
}

/** The id of a call that is alone in its request. */
const ID = 1;
const TOO_MANY_REQUESTS = 429;
/** Codes of JSON-RPC errors that mean the same; the second is that of Helius, 2026-11. */
const RATE_LIMIT_CODES: ReadonlySet<number> = new Set([TOO_MANY_REQUESTS, -32429]);
const SERVER_FAULT = 500;
/** An internal error, and the range for errors that an implementation defines; JSON-RPC 2.0. */
const INTERNAL_ERROR = -32603;
const SERVER_ERROR_FIRST = -32000;
const SERVER_ERROR_LAST = -32099;
