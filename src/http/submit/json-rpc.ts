/**
 * The JSON-RPC endpoint: single calls and batches, connected to access control and submission.
 *
 * The request was charged for its first call before its body is read; each further call of a
 * batch is charged before it is read. A batch gets one response, in the order of its calls, once
 * all of them have a result or the deadline has passed.
 *
 * Hot path: a single call in the common form costs one call into the native engine; any other costs
 * one parse and one decode before its transaction is submitted.
 */

import type { Clock } from "../../core/clock.ts";
import type { Rejection } from "../../core/errors.ts";
import type { SubmitResult } from "../../core/flow.ts";
import { type AccessControl, limitRejection } from "../../limits/access-control.ts";
import type { BatchResponse, BodyHandler, RequestContext } from "../request-context.ts";
import type { RequestTracker } from "../request-tracker.ts";
import {
  HEADERS_JSON,
  rpcRejected,
  rpcResult,
  rpcResultJson,
  rpcUnhealthy,
  STATUS_OK,
} from "../response.ts";
import type { Health } from "../routes.ts";
import {
  callId,
  type KeylessMethod,
  keylessMethod,
  parseBody,
  type RpcBody,
  readCall,
  type SendCall,
} from "./json-rpc-parse.ts";
import { openRpc } from "./openrpc.ts";
import { type Submit, type SubmitCall, submissionOf } from "./submission.ts";

export interface RpcDeps {
  readonly clock: Clock;
  readonly access: AccessControl;
  readonly submit: Submit;
  readonly tracker: RequestTracker;
  /** Submits calls in the common form; null: all calls are parsed. */
  readonly submitCall: SubmitCall | null;
  readonly health: Pick<Health, "isDraining">;
  readonly info: ServiceInfo;
}

/** What calls without a key may ask. */
export interface ServiceInfo {
  readonly tipAccounts: readonly string[];
  readonly version: string;
}

/** The results of the methods besides `getHealth` that need no key, as JSON text. */
export function keylessResults(
  info: ServiceInfo,
): { readonly method: KeylessMethod; readonly json: string }[] {
  const version = { "solana-core": NETWORK_VERSION, "feature-set": 0, touchdown: info.version };
  return [
    { method: "getTipAccounts", json: JSON.stringify(info.tipAccounts) },
    { method: "getVersion", json: JSON.stringify(version) },
    { method: "rpc.discover", json: JSON.stringify(openRpc(info.version)) },
  ];
}

/** `draining` rejects what arrives while this edge drains. */
export function createRpcHandler(deps: RpcDeps, draining: Rejection): BodyHandler {
  const { clock, access, submit, submitCall, tracker, health } = deps;
  const results = keylessResults(deps.info);

  function handleSingle(context: RequestContext, call: unknown, text: string): void {
    const read = readCall(call, text, -1);
    context.id = read.id;
    if (read.kind === "rejected") {
      context.reject(read.rejection);
    } else if (read.kind === "keyless") {
      context.send(STATUS_OK, HEADERS_JSON, keylessResult(read.method, read.id));
    } else handleSend(context, read);
  }

  function keylessResult(method: KeylessMethod, id: string): string {
    const found = results.find((each) => each.method === method);
    if (found !== undefined) return rpcResultJson(id, found.json);
    return health.isDraining() ? rpcUnhealthy(id) : rpcResult(id, HEALTHY);
  }

  function handleSend(context: RequestContext, { id, bytes, maxRetries }: SendCall): void {
    context.id = id;
    submit(submissionOf(context, bytes, maxRetries), (result) => context.respond(result));
    if (context.open) tracker.enqueue(context);
  }

  function handleBatch(context: RequestContext, calls: readonly unknown[], text: string): void {
    const batch = new Batch(context, tracker, calls.length);
    context.batch = batch;
    for (const [index, call] of calls.entries()) {
      const limited = index === 0 ? null : chargeCall(context);
      if (limited === null) handleCall(context, batch, call, text, index);
      else batch.reject(index, callId(call, text, index), limited);
    }
    if (context.open) tracker.enqueue(context);
  }

  function chargeCall(context: RequestContext): Rejection | null {
    const { principal } = context;
    if (principal === null) return null;
    const wait = access.charge(principal, clock.nowNs());
    return wait === 0 ? null : limitRejection(principal, wait, access.limitedBy);
  }

  function handleCall(
    context: RequestContext,
    batch: Batch,
    call: unknown,
    text: string,
    index: number,
  ): void {
    const read = readCall(call, text, index);
    if (read.kind === "rejected") {
      batch.reject(index, read.id, read.rejection);
    } else if (read.kind === "keyless") {
      batch.fill(index, keylessResult(read.method, read.id));
    } else {
      const { id, bytes, maxRetries } = read;
      batch.await(index, id);
      submit(submissionOf(context, bytes, maxRetries), (result) => batch.respond(index, result));
    }
  }

  function handleParsed(context: RequestContext, bytes: Uint8Array): void {
    const body = parseBody(bytes);
    if (context.principal === null && !needsNoKey(body)) {
      context.reject(tracker.draining ? draining : access.rejectionOf(context.token, context));
    } else if (body.kind === "rejected") {
      context.reject(body.rejection);
    } else if (body.kind === "single") {
      handleSingle(context, body.call, body.text);
    } else {
      handleBatch(context, body.calls, body.text);
    }
  }

  return {
    handle(context, bytes) {
      context.receivedNs = clock.nowNs();
      if (submitCall === null || context.principal === null) {
        handleParsed(context, bytes);
        return;
      }
      const answer = submitCall(submissionOf(context, bytes, null));
      if (answer === null) handleParsed(context, bytes);
      else {
        context.id = answer.id;
        context.respond(answer.result);
      }
    },
  };
}

/** Whether a body contains only calls that need no key. */
function needsNoKey(body: RpcBody): boolean {
  if (body.kind === "rejected") return false;
  const calls = body.kind === "single" ? [body.call] : body.calls;
  return calls.every((call) => {
    if (typeof call !== "object" || call === null || !("method" in call)) return false;
    return keylessMethod(call.method) !== null;
  });
}

/** Collects the responses to a batch. */
class Batch implements BatchResponse {
  readonly #context: RequestContext;
  readonly #tracker: RequestTracker;
  /** The body's bytes, divided among the calls. */
  readonly #bytesEach: number;
  readonly #ids: string[];
  /** JSON texts by the call's index; null while the result is pending. */
  readonly #parts: (string | null)[];
  #left: number;

  constructor(context: RequestContext, tracker: RequestTracker, size: number) {
    this.#context = context;
    this.#tracker = tracker;
    this.#bytesEach = Math.round(context.bodyBytes / size);
    this.#ids = new Array<string>(size).fill("null");
    this.#parts = new Array<string | null>(size).fill(null);
    this.#left = size;
  }

  /** Records the id for a later result. */
  await(index: number, id: string): void {
    this.#ids[index] = id;
  }

  respond(index: number, result: SubmitResult): void {
    if (this.#parts[index] !== null || !this.#context.open) return;
    this.#tracker.recordLatency(this.#context.receivedNs);
    const id = this.#ids[index] ?? "null";
    if (result.kind === "rejected") {
      this.reject(index, id, result.rejection);
      return;
    }
    this.#tracker.accepted(this.#context.principal, this.#bytesEach);
    this.fill(index, rpcResult(id, result.signature));
  }

  reject(index: number, id: string, rejection: Rejection): void {
    this.#tracker.rejected(this.#context.principal, rejection, this.#bytesEach);
    this.fill(index, rpcRejected(id, rejection));
  }

  fill(index: number, part: string): void {
    this.#parts[index] = part;
    this.#left -= 1;
    if (this.#left > 0) return;
    this.#context.send(STATUS_OK, HEADERS_JSON, `[${this.#parts.join(",")}]`);
  }

  timeOut(rejection: Rejection): void {
    for (const [index, part] of this.#parts.entries()) {
      if (part === null) this.reject(index, this.#ids[index] ?? "null", rejection);
    }
  }
}

const HEALTHY = "ok";
/**
 * What `getVersion` names as the node's version: the release of Agave whose rules for transactions
 * this edge applies. Clients compare it as a semantic version, and `@solana/web3.js` refuses an
 * answer without it. The number of a feature set, which some decoders require, is 0, because this
 * is no node.
 */
const NETWORK_VERSION = "4.2.2";
