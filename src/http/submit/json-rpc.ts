/**
 * The JSON-RPC endpoint: single calls and batches, joined to the gate and to the rest of the edge.
 *
 * The request itself has paid for its first call by the time its body is here; each further call
 * of a batch is charged before it is looked at. A batch is answered as a whole, in the order of
 * its calls, once the last of them has its answer or the deadline has passed.
 *
 * Hot path: a single call of the usual form costs one call into the native engine and one closure;
 * elsewhere it costs one parse and one decode.
 */

import type { Clock } from "../../core/clock.ts";
import type { Refusal } from "../../core/errors.ts";
import type { Answer } from "../../core/flow.ts";
import { type Gate, limitRefusal } from "../../limits/gate.ts";
import type { BodyTaker, Exchange, Gathering } from "../exchange.ts";
import type { Desk } from "../request-tracker.ts";
import { HEADERS_JSON, rpcRefused, rpcResult, STATUS_OK } from "../response.ts";
import type { CallReader, SendCall } from "./json-rpc-fast-path.ts";
import { callId, parseBody, type RpcBody, readCall } from "./json-rpc-parse.ts";
import type { Submit } from "./submission.ts";

export interface RpcDeps {
  readonly clock: Clock;
  readonly gate: Gate;
  readonly submit: Submit;
  readonly desk: Desk;
  /** Reads calls of the usual form; null: all are parsed. */
  readonly calls: CallReader | null;
}

/** `sends` says whether sendTransaction is served on this path; without it no key is needed. */
export function createRpcTaker(deps: RpcDeps, sends: boolean): BodyTaker {
  const { clock, gate, submit, desk, calls } = deps;

  function takeSingle(exchange: Exchange, call: unknown, text: string): void {
    const read = readCall(call, text, -1, sends);
    exchange.id = read.id;
    if (read.kind === "refused") {
      exchange.refuse(read.refusal);
    } else if (read.kind === "health") {
      exchange.send(STATUS_OK, HEADERS_JSON, rpcResult(read.id, HEALTHY));
    } else takeSend(exchange, read);
  }

  function takeSend(exchange: Exchange, { id, bytes, maxRetries }: SendCall): void {
    const { receivedNs } = exchange;
    const { account, keyId } = exchange.owner ?? NOBODY;
    exchange.id = id;
    const submission = { bytes, account, keyId, receivedNs, maxRetries };
    submit(submission, (answer) => exchange.settle(answer));
    if (exchange.open) desk.wait(exchange);
  }

  function takeBatch(exchange: Exchange, calls: readonly unknown[], text: string): void {
    const batch = new Batch(exchange, desk, calls.length);
    exchange.gathering = batch;
    for (const [index, call] of calls.entries()) {
      const limited = index === 0 ? null : chargeCall(exchange);
      if (limited === null) takeCall(exchange, batch, call, text, index);
      else batch.refuse(index, callId(call, text, index), limited);
    }
    if (exchange.open) desk.wait(exchange);
  }

  function chargeCall(exchange: Exchange): Refusal | null {
    const { owner } = exchange;
    if (owner === null) return null;
    const wait = gate.charge(owner, clock.nowNs());
    return wait === 0 ? null : limitRefusal(owner, wait, gate.limitedBy);
  }

  function takeCall(
    exchange: Exchange,
    batch: Batch,
    call: unknown,
    text: string,
    index: number,
  ): void {
    const read = readCall(call, text, index, sends);
    if (read.kind === "refused") {
      batch.refuse(index, read.id, read.refusal);
    } else if (read.kind === "health") {
      batch.fill(index, rpcResult(read.id, HEALTHY));
    } else {
      const { id, bytes, maxRetries } = read;
      const { account, keyId } = exchange.owner ?? NOBODY;
      const { receivedNs } = exchange;
      batch.await(index, id);
      const submission = { bytes, account, keyId, receivedNs, maxRetries };
      submit(submission, (answer) => batch.settle(index, answer));
    }
  }

  function takeParsed(exchange: Exchange, bytes: Uint8Array): void {
    const body = parseBody(bytes);
    if (sends && exchange.owner === null && !asksOnlyHealth(body)) {
      exchange.refuse(gate.refusalOf(exchange.token, exchange));
    } else if (body.kind === "refused") {
      exchange.refuse(body.refusal);
    } else if (body.kind === "single") {
      takeSingle(exchange, body.call, body.text);
    } else {
      takeBatch(exchange, body.calls, body.text);
    }
  }

  return {
    take(exchange, bytes) {
      // Of one that a front relayed it may be known.
      if (exchange.receivedNs === 0) exchange.receivedNs = clock.nowNs();
      const usual = sends && exchange.owner !== null ? (calls?.read(bytes) ?? null) : null;
      if (usual === null) takeParsed(exchange, bytes);
      else takeSend(exchange, usual);
    },
  };
}

/** Whether a body asks for nothing that needs a key. */
function asksOnlyHealth(body: RpcBody): boolean {
  if (body.kind === "refused") return false;
  const calls = body.kind === "single" ? [body.call] : body.calls;
  return calls.every((call) => {
    return (
      typeof call === "object" && call !== null && "method" in call && call.method === "getHealth"
    );
  });
}

/** The answers to a batch while they come in. */
class Batch implements Gathering {
  readonly #exchange: Exchange;
  readonly #desk: Desk;
  /** The body's bytes, spread over the calls. */
  readonly #bytesEach: number;
  readonly #ids: string[];
  /** JSON texts by the call's place; null while the answer is out. */
  readonly #parts: (string | null)[];
  #left: number;

  constructor(exchange: Exchange, desk: Desk, size: number) {
    this.#exchange = exchange;
    this.#desk = desk;
    this.#bytesEach = Math.round(exchange.bodyBytes / size);
    this.#ids = new Array<string>(size).fill("null");
    this.#parts = new Array<string | null>(size).fill(null);
    this.#left = size;
  }

  /** Notes the id under which a later answer goes. */
  await(index: number, id: string): void {
    this.#ids[index] = id;
  }

  settle(index: number, answer: Answer): void {
    if (this.#parts[index] !== null || !this.#exchange.open) return;
    this.#desk.settled(this.#exchange.receivedNs);
    const id = this.#ids[index] ?? "null";
    if (answer.kind === "refused") {
      this.refuse(index, id, answer.refusal);
      return;
    }
    this.#desk.accepted(this.#exchange.owner, this.#bytesEach);
    this.fill(index, rpcResult(id, answer.signature));
  }

  refuse(index: number, id: string, refusal: Refusal): void {
    this.#desk.refused(this.#exchange.owner, refusal, this.#bytesEach);
    this.fill(index, rpcRefused(id, refusal));
  }

  fill(index: number, part: string): void {
    this.#parts[index] = part;
    this.#left -= 1;
    if (this.#left > 0) return;
    this.#exchange.send(STATUS_OK, HEADERS_JSON, `[${this.#parts.join(",")}]`);
  }

  giveUp(refusal: Refusal): void {
    for (const [index, part] of this.#parts.entries()) {
      if (part === null) this.refuse(index, this.#ids[index] ?? "null", refusal);
    }
  }
}

const HEALTHY = "ok";
/** Nothing is submitted without an owner; the calls that need none get no further. */
const NOBODY = { account: "", keyId: "" };
