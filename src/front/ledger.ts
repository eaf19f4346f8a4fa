// Hot path: `take` runs for each transaction that a front dealt with.
/**
 * Takes what fronts tell into the books: what they sent, what they were given again, and what they
 * refused or turned away. Whose it was is known by the place of the pass that let it in.
 */

import type { Refusal, RefusalReason } from "../core/errors.ts";
import { refusalOf } from "../core/faults.ts";
import type { Accepted, FaultCode, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { LatencySink } from "../ingress/desk.ts";
import { NO_ROOM } from "../ingress/elsewhere.ts";
import { INTERNAL } from "../ingress/exchange.ts";
import type { FrontSend } from "../send/front-sender.ts";
import { type FrontRecord, REFUSED, REPEATED, TURNED_AWAY } from "./records.ts";

/** What is kept of the transactions that fronts took. */
export interface FrontBooks {
  /** Takes in what a front has put on the wire by itself. */
  adopt(packet: Packet, keyId: string, accepted: Accepted, sent: FrontSent): void;
  /** A front was given again what it had passed on a moment ago. */
  repeated(submitted: Pick<Packet, "bytes" | "account" | "maxRetries">, offset: number): void;
  /** A front refused a transaction. */
  refused(fault: FaultCode): void;
}

/** What a front says of its sending. */
export interface FrontSent {
  readonly send: FrontSend;
  /** When the verdict was there, and when the engine had it, by `Clock.nowNs`. */
  readonly decodedNs: number;
  readonly sentNs: number;
}

export interface LedgerDeps {
  readonly books: FrontBooks;
  /** From a body complete to its answer. */
  readonly latency: LatencySink;
  /** Told of what an account was refused. */
  readonly refused: (account: string, refusal: Refusal, keyId: string) => void;
  /** Counts what each key did; null when nobody does. */
  readonly usage: LedgerUsage | null;
}

interface LedgerUsage {
  request(keyId: string, reason: RefusalReason | null, bytes: number): void;
}

export interface LedgerCounters {
  /** Transactions that fronts judged, and those that they answered as repetitions. */
  decoded: number;
  repeated: number;
  /** Those that they held for a moment, to send them together with others. */
  held: number;
}

/** Whose key a pass is for. */
export interface PassOwner {
  readonly keyId: string;
  readonly account: string;
}

export class Ledger {
  readonly counters: LedgerCounters = { decoded: 0, repeated: 0, held: 0 };
  readonly #deps: LedgerDeps;
  readonly #owners: readonly PassOwner[];

  /** `owners` are by the place of their pass. */
  constructor(deps: LedgerDeps, owners: readonly PassOwner[]) {
    this.#deps = deps;
    this.#owners = owners;
  }

  readonly take = (record: FrontRecord): void => {
    const { kind, verdict, place } = record;
    const owner = this.#owners[place] ?? NOBODY;
    if (kind === REPEATED) this.#repeat(record, owner);
    else if (kind === TURNED_AWAY) this.#turnAway(record, owner);
    else if (kind === REFUSED || verdict.kind === "refused") this.#refuse(record, owner);
    else this.#adopt(record, owner, verdict);
  };

  #adopt(record: FrontRecord, { account, keyId }: PassOwner, accepted: Accepted): void {
    const { books, latency, usage } = this.#deps;
    const { bytes, receivedNs, maxRetries } = record;
    const priorityLamports = accepted.priorityFeeLamports + accepted.tipLamports;
    this.counters.decoded += 1;
    if (record.send.held) this.counters.held += 1;
    latency.record(record.sentNs - receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    const packet = createPacket(0, bytes, account, receivedNs, maxRetries, priorityLamports);
    books.adopt(packet, keyId, accepted, record);
  }

  #repeat(record: FrontRecord, { account, keyId }: PassOwner): void {
    const { books, latency, usage } = this.#deps;
    const { bytes, maxRetries } = record;
    this.counters.repeated += 1;
    latency.record(record.decodedNs - record.receivedNs);
    usage?.request(keyId, null, record.bodyBytes);
    books.repeated({ bytes, account, maxRetries }, record.offset);
  }

  #refuse(record: FrontRecord, { account, keyId }: PassOwner): void {
    const { verdict } = record;
    if (verdict.kind !== "refused") return;
    const { books, latency, usage, refused } = this.#deps;
    const refusal = refusalOf(verdict);
    this.counters.decoded += 1;
    latency.record(record.decodedNs - record.receivedNs);
    books.refused(verdict.fault);
    refused(account, refusal, keyId);
    usage?.request(keyId, refusal.reason, record.bodyBytes);
  }

  #turnAway({ hadNoRoom, bodyBytes }: FrontRecord, { account, keyId }: PassOwner): void {
    const { usage, refused } = this.#deps;
    const refusal = hadNoRoom ? NO_ROOM : INTERNAL;
    refused(account, refusal, keyId);
    usage?.request(keyId, refusal.reason, bodyBytes);
  }
}

/** Every place that fronts know was somebody's before. */
const NOBODY: PassOwner = { keyId: "", account: "" };
