/**
 * Admission in a front: what it is certain of is let in and answered here, anything else is moved
 * to the main thread. A request whose limit was charged here is moved as paid.
 *
 * A request with a key that is not known here is moved with what of its body has come with it; the
 * main thread asks for the rest once it knows the key, so nobody without one makes this process
 * hold it.
 *
 * Hot path: no allocation of its own for a request that is let in but one record, the submission.
 */

import type { Clock } from "../core/clock.ts";
import { RAW_BODY_BYTES_MAX, RPC_BODY_BYTES_MAX } from "../core/limits.ts";
import { type Admission, admitAny, DRAINING } from "./admission.ts";
import type { CallReader } from "./call-reader.ts";
import type { Desk } from "./desk.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { BodyTaker, Exchange } from "./exchange.ts";
import { type HeaderSource, readFraming } from "./framing.ts";
import type { Gate } from "./gate.ts";
import type { Door, MovedHead, MoveReason } from "./moved.ts";
import type { TrySubmit } from "./submit.ts";

export interface FrontAdmissionDeps {
  readonly clock: Clock;
  readonly gate: Gate;
  readonly submit: TrySubmit;
  readonly calls: CallReader;
  readonly desk: Desk;
  readonly elsewhere: Elsewhere;
}

export function createFrontAdmission(deps: FrontAdmissionDeps): Admission {
  const { clock, gate, desk, elsewhere } = deps;
  const raw = createTaker(deps, "raw");
  const rpc = createTaker(deps, "rpc");

  /** JSON-RPC on `/` needs no key, so its body is read here. */
  const open: BodyTaker = {
    take(exchange, bytes) {
      const head = headOf("open", "other", exchange, bytes.length, clock.nowNs());
      elsewhere.move(desk, exchange, head, bytes);
    },
  };

  function admit(
    exchange: Exchange,
    headers: HeaderSource,
    door: "raw" | "rpc",
    sizeMax: number,
    taker: BodyTaker,
  ): void {
    const { token, bodySize, fault } = readFraming(headers);
    if (fault !== null) exchange.cut(fault);
    else if (desk.draining) exchange.refuse(DRAINING);
    else {
      exchange.token = token;
      const owner = gate.find(token, exchange);
      exchange.owner = owner;
      const nowNs = clock.nowNs();
      if (owner === null || gate.charge(owner, nowNs) > 0) {
        const why = owner === null ? "key" : "limit";
        elsewhere.move(desk, exchange, headOf(door, why, exchange, bodySize, nowNs), null);
      } else if (bodySize > sizeMax) {
        // It is cut there, where it is known of whom and of which key that has to be noted.
        const head = headOf(door, "other", exchange, bodySize, nowNs);
        elsewhere.move(desk, exchange, { ...head, isPaid: true }, null);
      } else {
        exchange.receive(bodySize, taker);
      }
    }
  }

  return {
    raw(exchange, headers) {
      admit(exchange, headers, "raw", RAW_BODY_BYTES_MAX, raw);
    },
    rpc(exchange, headers) {
      admit(exchange, headers, "rpc", RPC_BODY_BYTES_MAX, rpc);
    },
    open: (exchange, headers) => admitAny(exchange, headers, open),
  };
}

/** Answers what is let in; what is declined, or is no call of the usual form, is moved. */
function createTaker(deps: FrontAdmissionDeps, door: "raw" | "rpc"): BodyTaker {
  const { clock, calls, submit, desk, elsewhere } = deps;

  function trySubmit(
    exchange: Exchange,
    bytes: Uint8Array,
    body: Uint8Array,
    maxRetries: number | null,
  ): void {
    const { owner, receivedNs, bodyBytes } = exchange;
    const answer =
      owner === null ? "key" : submit({ bytes, owner, receivedNs, bodyBytes, maxRetries });
    if (typeof answer === "string") movePaid(exchange, answer, body);
    else exchange.settle(answer);
  }

  function movePaid(exchange: Exchange, why: MoveReason, body: Uint8Array): void {
    const head = headOf(door, why, exchange, body.length, exchange.receivedNs);
    elsewhere.move(desk, exchange, { ...head, isPaid: true }, body);
  }

  if (door === "raw") {
    return {
      take(exchange, bytes) {
        exchange.receivedNs = clock.nowNs();
        trySubmit(exchange, bytes, bytes, null);
      },
    };
  }
  return {
    take(exchange, body) {
      exchange.receivedNs = clock.nowNs();
      const call = calls.read(body);
      if (call === null) {
        movePaid(exchange, "other", body);
        return;
      }
      exchange.id = call.id;
      trySubmit(exchange, call.bytes, body, call.maxRetries);
    },
  };
}

function headOf(
  door: Door,
  why: MoveReason,
  { token }: Exchange,
  bodySize: number,
  receivedNs: number,
): MovedHead {
  return { door, why, isPaid: false, token, bodySize, receivedNs, page: null };
}
