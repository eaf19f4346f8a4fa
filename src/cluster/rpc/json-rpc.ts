/**
 * Calls of a node's JSON-RPC, one at a time or several in one request.
 *
 * A node that refuses batches, and answers what is asked alone, is asked one by one from then on.
 * The surprise: results are not validated here and are read without a library, because validating a
 * leader schedule held the thread for 480 ms where parsing takes 5 ms.
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

/** The node's own word that it does not do what it was asked. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  /** Of JSON-RPC; 0 where it named none. */
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** What became of one call of a batch. */
export type CallResult = { readonly result: unknown } | { readonly error: Error };

export interface Caller {
  /** The result; rejects with the node's own words, or with what went wrong on the way. */
  call(method: string, params: readonly unknown[]): Promise<unknown>;
  /** One result for each call; rejects when there is no answer to all of it. */
  batch(calls: readonly Call[]): Promise<readonly CallResult[]>;
  /** The result that an answer to one call holds; throws as `call` rejects. */
  read(method: string, response: RpcHttpResponse): unknown;
}

export function createCaller(httpClient: Pick<RpcHttpClient, "post">): Caller {
  let supportsBatches = true;

  async function call(method: string, params: readonly unknown[]): Promise<unknown> {
    return read(method, await httpClient.post(textOf({ method, params }, ID)));
  }

  function read(method: string, response: RpcHttpResponse): unknown {
    const body = parsed(method, response);
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
    read,
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
      // Without any result the node is away, as it would be for the batch.
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

/** Null when the node takes no batches. Limits and faults of the moment are thrown. */
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
    // A page of words from a gateway that knows calls alone.
    return null;
  }
  if (!Array.isArray(body)) return null;
  const results: CallResult[] = calls.map(({ method }) => ({
    error: new Error(`${method}: no answer in the batch`),
  }));
  for (const each of body as readonly unknown[]) {
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
  // Nothing but complaints: they may be about the batch.
  return results.some(hasResult) ? results : null;
}

/** The answer's JSON. Gateways tell of a JSON-RPC error with other statuses than 200, too. */
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
  // Some say beside an error that there is no result.
  if ("result" in response && !isRecord(error)) return response["result"];
  const code = isRecord(error) && typeof error["code"] === "number" ? error["code"] : 0;
  // Gateways say in a word that a key is wrong or a quota is spent.
  const word = typeof error === "string" && error !== "" ? error : "no result";
  const message = isRecord(error) ? String(error["message"] ?? "an error without a word") : word;
  throw new RpcError(code, `${method}: ${message}`);
}

/** Of a call that is alone in its request. */
const ID = 1;
const TOO_MANY_REQUESTS = 429;
const SERVER_FAULT = 500;
