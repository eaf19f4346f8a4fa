/**
 * Passes receipts on to the QUIC clients that want some: what the network did with transactions, as
 * the log of changes has it. The ingress thread knows which client wants which, and counts them;
 * while none does, the log is not read.
 *
 *  log of changes ─▶ a batch, every 10 ms ─▶ ingress thread ─▶ clients
 *
 * Note: a batch that the thread does not take is made again in the next round, from the same place
 * in the log. What the log drops meanwhile is counted as missed.
 */

import type { Clock, Timer } from "../core/clock.ts";
import { QUIC_RECEIPT_BYTES } from "../native/contract.ts";
import type { IngressThreads } from "../native-ingress/ingress-threads.ts";
import type { NetworkChange } from "../receipts/network-changes.ts";
import type { Receipts } from "../receipts/receipts.ts";
import { accountNumber } from "../send/native/account-number.ts";
import { QUIC_RECEIPT_STEPS_MAX, QUIC_RECEIPTS_LOOK_MS, QUIC_RECEIPTS_ROUND_MS } from "./limits.ts";

export interface QuicReceiptsDeps {
  readonly clock: Clock;
  readonly receipts: Pick<Receipts, "changes" | "networkChanges">;
  readonly ingressThreads: Pick<IngressThreads, "quic" | "sendReceipts">;
  /** Reads the engine's events, so that accounting has all submissions and outcomes so far. */
  readonly flushEvents: () => void;
}

export interface QuicReceipts {
  start(): void;
  stop(): void;
  /** Changes that the log no longer had. */
  readonly counters: { missed: number };
}

export function createQuicReceipts(deps: QuicReceiptsDeps): QuicReceipts {
  const { clock, receipts, ingressThreads, flushEvents } = deps;
  const batch = Buffer.alloc(RECEIPTS_PER_BATCH * QUIC_RECEIPT_BYTES);
  const counters = { missed: 0 };
  let timer: Timer | null = null;
  /** The next change to pass on. */
  let next = 0;
  /** That of the last look: a client that waits since then may wait for a change since then. */
  let nextAtLook = 0;

  function passOn(): void {
    flushEvents();
    const { first } = receipts.changes;
    if (next < first) {
      counters.missed += first - next;
      next = first;
    }
    let size = 0;
    const write = (change: NetworkChange): void => {
      writeReceipt(batch, size, change);
      size += QUIC_RECEIPT_BYTES;
    };
    const steps = QUIC_RECEIPT_STEPS_MAX;
    const reached = receipts.networkChanges(next, steps, RECEIPTS_PER_BATCH, write);
    if (size === 0 || ingressThreads.sendReceipts(batch.subarray(0, size))) next = reached;
  }

  function run(): void {
    const isWanted = ingressThreads.quic.followers > 0;
    if (isWanted) passOn();
    else next = nextAtLook;
    nextAtLook = isWanted ? next : receipts.changes.next;
    timer = clock.after(isWanted ? QUIC_RECEIPTS_ROUND_MS : QUIC_RECEIPTS_LOOK_MS, run);
  }

  return {
    counters,
    start() {
      next = receipts.changes.next;
      nextAtLook = next;
      timer = clock.after(QUIC_RECEIPTS_LOOK_MS, run);
    },
    stop() {
      timer?.cancel();
      timer = null;
    },
  };
}

/** As `receipts_of` of `native/src/quic_server/receipts.rs` reads it. */
function writeReceipt(batch: Buffer, at: number, change: NetworkChange): void {
  const { account, state, signature, slot, hasFailed, afterNs } = change;
  const microseconds = Math.min(UINT32_MAX, Math.floor(afterNs / NS_PER_US));
  batch.writeDoubleLE(accountNumber(account), at);
  batch.writeUInt8(VERDICT_VERSION, at + 8);
  // 0 is a refusal.
  batch.writeUInt8(state + 1, at + 9);
  batch.writeUInt16LE(0, at + 10);
  batch.writeUInt32LE(microseconds, at + 12);
  batch.writeUInt32LE(0, at + 16);
  batch.writeUInt32LE(hasFailed ? 1 : 0, at + 20);
  batch.writeBigUInt64LE(BigInt(slot ?? 0), at + 24);
  batch.set(signature, at + 32);
}

const RECEIPTS_PER_BATCH = 1024;
const VERDICT_VERSION = 1;
const UINT32_MAX = 0xffff_ffff;
const NS_PER_US = 1000;
