// Hot path: `take` runs for each transaction that a front dealt with.
/**
 * Takes what fronts tell into the books: what they sent, and what they were given again. Whose it
 * was is known by the place of the pass that let it in.
 */

import type { RefusalReason } from "../core/errors.ts";
import type { Accepted, Packet } from "../core/flow.ts";
import { createPacket } from "../core/packet.ts";
import type { LatencySink } from "../http/request-tracker.ts";
import type { FrontSend } from "../send/native/send-record.ts";
import { type FrontRecord, SENT } from "./record-ring.ts";

/** What is kept of the transactions that fronts took. */
export interface FrontBooks {
  /** Takes in what a front has put on the wire by itself. */
  adopt(packet: Packet, keyId: string, accepted: Accepted, sent: FrontSent): void;
  /** A front was given again what it had passed on a moment ago. */
  repeated(submitted: Pick<Packet, "bytes" | "account" | "maxRetries">, offset: number): void;
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
  /** Counts what each key did; null when nobody does. */
  readonly usage: LedgerUsage | null;
}

interface LedgerUsage {
  request(keyId: string, reason: RefusalReason | null, bytes: number): void;
}

export interface LedgerCounters {
  /** Transactions that fronts sent, and those that they answered as repetitions. */
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
    if (kind === SENT && verdict.kind === "accepted") this.#adopt(record, owner, verdict);
    else this.#repeat(record, owner);
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
}

/** Every place that fronts know was somebody's before. */
const NOBODY: PassOwner = { keyId: "", account: "" };
