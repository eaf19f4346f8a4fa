/**
 * What is decided by the headers alone, in this order: framing, draining, key, limit, size. Only
 * then is the body read, so nobody makes this process hold or parse bytes that it refuses anyway.
 *
 * The one exception: getHealth needs no key and shares its path with sendTransaction. A body too
 * small for any transaction is therefore read before a missing key is held against it.
 *
 * Hot path: no allocation of its own for a request that is let in.
 */

import type { Clock } from "../core/clock.ts";
import type { Refusal } from "../core/errors.ts";
import {
  type Gate,
  type KeyOwner,
  type LimitedBy,
  limitOf,
  limitRefusal,
  retryAfterSeconds,
} from "../limits/gate.ts";
import type { BodyTaker, Exchange } from "./exchange.ts";
import { type HeaderSource, readFraming } from "./framing.ts";
import {
  KEYLESS_BODY_BYTES_MAX,
  OPEN_BODY_BYTES_MAX,
  RAW_BODY_BYTES_MAX,
  RPC_BODY_BYTES_MAX,
  UNREAD_BODY_BYTES_MAX,
} from "./limits.ts";
import { type Relayed, readRelayed } from "./proxied-request.ts";
import type { Desk } from "./request-tracker.ts";
import { NO_EXTRAS } from "./response.ts";
import { createRpcTaker } from "./submit/json-rpc.ts";
import type { CallReader } from "./submit/json-rpc-fast-path.ts";
import { createRawTaker } from "./submit/raw.ts";
import type { Submit } from "./submit/submission.ts";

export interface AdmissionDeps {
  readonly clock: Clock;
  readonly gate: Gate;
  readonly submit: Submit;
  readonly desk: Desk;
  /** Reads JSON-RPC calls of the usual form; null: all are parsed. */
  readonly calls: CallReader | null;
  readonly relays?: Relays;
}

/** One entrance for each route that takes a body. */
export interface Admission {
  raw(exchange: Exchange, headers: HeaderSource): void;
  rpc(exchange: Exchange, headers: HeaderSource): void;
  /** JSON-RPC on `/`: nothing there needs a key. */
  open(exchange: Exchange, headers: HeaderSource): void;
}

/** What there is of fronts that relay requests here. */
export interface Relays {
  /** The name of the line that they write; "" where there are none. */
  readonly headerName: string;
  /** Told whose key a submission carries that a front relayed, before it is charged. */
  known(front: number, token: string, owner: KeyOwner): void;
}

export const NO_RELAYS: Relays = { headerName: "", known() {} };

export function createAdmission(deps: AdmissionDeps): Admission {
  const { clock, gate, desk } = deps;
  const relays = deps.relays ?? NO_RELAYS;
  const rawTaker = createRawTaker(deps);
  const rpcTaker = createRpcTaker(deps, true);
  const openTaker = createRpcTaker(deps, false);

  /** `keylessMax` is the largest body that is read without a key; -1 for none at all. */
  function admit(
    exchange: Exchange,
    headers: HeaderSource,
    sizeMax: number,
    keylessMax: number,
    taker: BodyTaker,
  ): void {
    const { token, bodySize, fault, relayed, isLast } = readFraming(headers, relays.headerName);
    exchange.isLast = isLast;
    if (fault !== null) {
      exchange.cut(fault);
      return;
    }
    if (relays.headerName !== "") exchange.relayed = readRelayed(relayed);
    // What a front had begun to take before is not new work.
    const isBegun = (exchange.relayed?.receivedNs ?? 0) > 0;
    if (desk.draining && !isBegun) exchange.refuse(DRAINING);
    else {
      const owner = gate.find(token, exchange);
      if (owner === null) admitNobody(exchange, token, bodySize, keylessMax, taker);
      else if (exchange.relayed === null) admitOwner(exchange, owner, bodySize, sizeMax, taker);
      else admitRelayed(exchange, exchange.relayed, token, owner, bodySize, sizeMax, taker);
    }
  }

  function admitNobody(
    exchange: Exchange,
    token: string,
    bodySize: number,
    keylessMax: number,
    taker: BodyTaker,
  ): void {
    if (bodySize <= keylessMax) {
      exchange.token = token;
      exchange.receive(bodySize, taker);
    } else if (bodySize > UNREAD_BODY_BYTES_MAX) exchange.cut(gate.refusalOf(token, exchange));
    else exchange.refuse(gate.refusalOf(token, exchange));
  }

  function admitOwner(
    exchange: Exchange,
    owner: KeyOwner,
    bodySize: number,
    sizeMax: number,
    taker: BodyTaker,
  ): void {
    exchange.owner = owner;
    const wait = gate.charge(owner, clock.nowNs());
    if (wait > 0) refuseLimited(exchange, owner, wait, gate.limitedBy, bodySize);
    else receiveWithin(exchange, bodySize, sizeMax, taker);
  }

  function admitRelayed(
    exchange: Exchange,
    { front, isPaid, receivedNs }: Relayed,
    token: string,
    owner: KeyOwner,
    bodySize: number,
    sizeMax: number,
    taker: BodyTaker,
  ): void {
    if (front >= 0) relays.known(front, token, owner);
    if (isPaid) {
      exchange.owner = owner;
      exchange.receivedNs = receivedNs;
      receiveWithin(exchange, bodySize, sizeMax, taker);
    } else admitOwner(exchange, owner, bodySize, sizeMax, taker);
  }

  return {
    raw(exchange, headers) {
      admit(exchange, headers, RAW_BODY_BYTES_MAX, -1, rawTaker);
    },
    rpc(exchange, headers) {
      admit(exchange, headers, RPC_BODY_BYTES_MAX, KEYLESS_BODY_BYTES_MAX, rpcTaker);
    },
    open: (exchange, headers) => admitAny(exchange, headers, openTaker),
  };
}

/** Admits on `/`, where nothing needs a key. */
function admitAny(exchange: Exchange, headers: HeaderSource, taker: BodyTaker): void {
  const { bodySize, fault, isLast } = readFraming(headers);
  exchange.isLast = isLast;
  if (fault !== null) exchange.cut(fault);
  else receiveWithin(exchange, bodySize, OPEN_BODY_BYTES_MAX, taker);
}

function receiveWithin(
  exchange: Exchange,
  bodySize: number,
  sizeMax: number,
  taker: BodyTaker,
): void {
  if (bodySize > sizeMax) exchange.cut(tooLarge(bodySize, sizeMax));
  else exchange.receive(bodySize, taker);
}

function refuseLimited(
  exchange: Exchange,
  owner: KeyOwner,
  wait: number,
  by: LimitedBy,
  bodySize: number,
): void {
  const refusal = limitRefusal(owner, wait, by);
  const plan = limitOf(owner, by);
  const extras = { ...NO_EXTRAS, retryAfterSeconds: retryAfterSeconds(wait), plan };
  if (bodySize > UNREAD_BODY_BYTES_MAX) exchange.cut(refusal, extras);
  else exchange.refuse(refusal, extras);
}

export function tooLarge(found: number, needed: number): Refusal {
  return {
    reason: "too_large",
    sentence: `the body has ${found} bytes, at most ${needed} are taken here`,
    data: { found, needed },
  };
}

const DRAINING: Refusal = {
  reason: "overloaded",
  sentence: "this edge is draining and takes no new work; connect anew to reach another one",
  data: {},
};
