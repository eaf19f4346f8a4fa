/**
 * Sends a transaction as an ingress thread does, on the thread of its test: for tests of the side
 * that records it afterwards (`Sender.recordSend`). The real one is `native/src/submit/fan_out.rs`.
 *
 * It uses the targets that the sender set. It never corks.
 */

import { TARGETS_MAX } from "../../src/core/limits.ts";
import type { NativeEngine, NativeSending } from "../../src/native/contract.ts";
import { DELIVERY_NUMBERS } from "../../src/send/limits.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";
import type { TestTargets } from "./target-table.ts";

export interface IngressSender {
  /**
   * Sends to every target and writes `into`. False where that is impossible now: nothing is sent,
   * and the sender's own thread must accept it.
   */
  send(bytes: Uint8Array, into: SendRecord): boolean;
  /**
   * Whether the sender must record the last send immediately: it has deliveries to queue for
   * connected leaders, or must check the table before the next send.
   */
  readonly needsImmediateWake: boolean;
}

/** Called before the engine's events are read, to record what was sent so far. */
export interface DrainHooks {
  beforeDrain: () => void;
}

/** The engine with such a hook. */
export function withDrainHooks(native: NativeEngine, hooks: DrainHooks): NativeSending {
  return {
    ...native,
    eventsDrain(engine, out) {
      hooks.beforeDrain();
      return native.eventsDrain(engine, out);
    },
  };
}

export function createIngressSender(
  native: Pick<NativeSending, "txSend">,
  targets: TestTargets,
): IngressSender {
  const deliveries = new Uint32Array(2 * TARGETS_MAX);
  // As in `fan_out.rs`: no other thread uses these numbers.
  let number = targets.registerThread() * DELIVERY_NUMBERS;
  let needsImmediateWake = false;

  function send(bytes: Uint8Array, into: SendRecord): boolean {
    const accepts = (index: number): boolean => bytes.length <= (targets.bytesMax[index] ?? 0);
    const peers = targets.peers.filter((_, index) => accepts(index));
    const count = peers.length;
    if (count === 0 || bytes.length === 0) return false;
    number += 1;
    for (const [index, peer] of peers.entries()) {
      into.peers[index] = peer;
      deliveries[2 * index] = peer;
      deliveries[2 * index + 1] = number;
    }
    const part = deliveries.subarray(0, 2 * count);
    const status = native.txSend(targets.engine, part, bytes, number, targets.ttlMs, 0, 0);
    if (status <= 0) return false;
    into.number = number;
    into.count = count;
    into.status = status;
    into.corked = false;
    const all = (1 << count) - 1;
    // The sender queues deliveries that were rejected.
    needsImmediateWake = ((status | (status >>> 16)) & all) !== all;
    return true;
  }

  return {
    send,
    get needsImmediateWake() {
      return needsImmediateWake;
    },
  };
}
