/**
 * A connection of the native transport, on an addon that the test controls.
 */

import {
  CONTRACT_VERSION,
  EVENT_NUMBERS,
  EVENT_KIND as KIND,
  type NativeSending,
} from "../../src/native/contract.ts";
import { identityOfSeed } from "../../src/send/identity.ts";
import type { TargetTable } from "../../src/send/native/target-table.ts";
import {
  BATCH_NUMBERS,
  createNativeTransport,
  type SubmissionSink,
} from "../../src/send/native/transport-native.ts";
import type { CloseCause, DeliveryResult } from "../../src/send/transport.ts";

export const BYTES = Uint8Array.of(1, 2, 3);
export const PEER = 7;
export const ENGINE = 3;
/** The time of every record. */
export const RECORD_NS = 5;

export interface EngineEvent {
  /** A submission: of one unit, as far as the transport knows. */
  readonly kind: keyof typeof KIND | "submission";
  readonly tag?: number;
  readonly reason?: number;
  readonly rttUs?: number;
  readonly detail?: number;
  readonly peer?: number;
  /** The transaction's number; defaults to the delivery's tag, as the sender uses. */
  readonly tx?: number;
  readonly atNs?: number;
}

/** An addon that records its calls, returns configured results, and emits configured records. */
export class FakeNative implements NativeSending {
  startResult = ENGINE;
  openResponse = PEER;
  sendResult = 1;
  readonly sent: { readonly deliveries: number[]; readonly bytes: Uint8Array; ttlMs: number }[] =
    [];
  readonly closed: number[] = [];
  stops = 0;
  #records: EngineEvent[] = [];
  #wake: () => void = () => {};

  contractVersion(): number {
    return CONTRACT_VERSION;
  }
  engineStart(_: unknown, wake: () => void): number {
    this.#wake = wake;
    return this.startResult;
  }
  engineStop(): number {
    this.stops += 1;
    return 0;
  }
  /** In the order of ENGINE_COUNTERS. */
  counters = [0, 0, 0, 0, 0, 0, 0];
  engineCounters(_: number, out: Float64Array): number {
    out.set(this.counters);
    return this.counters.length;
  }
  identitySet(): number {
    return 0;
  }
  peerOpen(): number {
    return this.openResponse;
  }
  peerClose(_: number, peer: number): number {
    this.closed.push(peer);
    return 0;
  }
  readonly pinged: number[] = [];
  peerPing(_: number, peer: number): number {
    this.pinged.push(peer);
    return 0;
  }
  /** 3: admitted. */
  state = 3;
  queued = 0;
  datagramsReceived = 0;
  streamsLeft = 0;
  /** As the engine does for a closed connection. */
  isGone = false;
  peerStats(_: number, __: number, out: Float64Array): number {
    if (this.isGone) return 0;
    out.set([this.state, 0, this.queued, 0, 0, 0, 0, 0, this.datagramsReceived, this.streamsLeft]);
    return 10;
  }
  txSend(
    _: number,
    deliveries: Uint32Array,
    bytes: Uint8Array,
    __: number,
    ttlMs: number,
    account: number,
    lamports: number,
  ): number {
    this.sent.push({ deliveries: [...deliveries], bytes: Uint8Array.from(bytes), ttlMs });
    this.offers.push([account, lamports]);
    return this.sendResult;
  }
  readonly offers: [number, number][] = [];
  readonly shares: number[][] = [];
  landedSharesSet(_: number, pairs: Float64Array): number {
    this.shares.push([...pairs]);
    return 0;
  }
  targetsSet(): number {
    return 0;
  }
  eventsUnread(): number {
    return this.#records.length;
  }
  eventsDrain(_: number, out: Float64Array): number {
    const batch = this.#records.splice(0, Math.floor(out.length / 8));
    for (const [index, event] of batch.entries()) {
      const { kind, tag = 0, reason = 0, rttUs = 0, detail = 0, peer = PEER } = event;
      const { tx = tag, atNs = RECORD_NS } = event;
      out.set(
        [kind === "submission" ? 1 : KIND[kind], tx, peer, tag, reason, atNs, rttUs, detail],
        index * 8,
      );
    }
    return batch.length;
  }

  /** No thread is woken for it. */
  happen(...event: EngineEvent[]): void {
    this.#records.push(...event);
  }

  emit(...event: EngineEvent[]): void {
    this.happen(...event);
    this.#wake();
  }
}

/** For tests without any. */
export const NO_SUBMISSIONS: SubmissionSink = {
  batch: new Float64Array(BATCH_NUMBERS),
  take: () => EVENT_NUMBERS,
  noteUnread() {},
  yieldThread() {},
};

export async function fixture(
  queuePerLeader = 128,
  targetTable: TargetTable | null = null,
  submissions: SubmissionSink = NO_SUBMISSIONS,
) {
  const native = new FakeNative();
  const transport = createNativeTransport(
    {
      native,
      identity: identityOfSeed(new Uint8Array(32).fill(5)),
      log: { info() {}, warn() {}, error() {} },
      shared: targetTable === null ? null : { targetTable, submissions },
    },
    {
      binds: ["127.0.0.1:0"],
      busyPollUs: 0,
      idleTimeoutMs: 10_000,
      keepAliveMs: 1_000,
      admissionTimeoutMs: 5_000,
      queuePerLeader,
      deliveryTtlMs: 800,
    },
  );
  await transport.start();
  /** What other threads sent. */
  const elsewhere: unknown[] = [];
  const hookEvents: (CloseCause | "progress" | [number, DeliveryResult, number])[] = [];
  const connection = transport.connect("127.0.0.1:8009", {
    progress: () => hookEvents.push("progress"),
    result: (...result) => hookEvents.push(result),
    sentElsewhere: ({ id }, delivery, sentNs, waits) =>
      elsewhere.push([id, delivery, sentNs, waits]),
    ended: (cause) => hookEvents.push(cause),
  });
  if (connection === null) throw new Error("no connection");
  return { native, transport, connection, hookEvents, elsewhere };
}

export async function admitted(...options: Parameters<typeof fixture>) {
  const parts = await fixture(...options);
  parts.native.emit({ kind: "connected", detail: 4096 }, { kind: "admitted", rttUs: 900 });
  parts.hookEvents.length = 0;
  return parts;
}
