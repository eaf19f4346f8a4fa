/**
 * Sends a transaction as an ingress thread does, on the thread of its test: for tests of the side
 * that records it afterwards (`Sender.recordSend`). The real one is `native/src/submit/fan_out.rs`.
 *
 * It uses the target table that the sender keeps in shared memory, and allocates each delivery's
 * stream from the count that all threads share. It never corks.
 */

import { SHARED_TARGETS_MAX } from "../../src/core/limits.ts";
import type { NativeSending } from "../../src/native/contract.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";
import { TargetTable } from "./target-table.ts";

/** `TX_MIN` of `native/src/submit/fan_out.rs`. */
const TX_MIN = 2 ** 40;

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

/** `memory` is that of the SharedTargetTable. */
export function createIngressSender(
  native: Pick<NativeSending, "txSend">,
  memory: SharedArrayBuffer,
): IngressSender {
  const table = new TargetTable(memory);
  const deliveries = new Uint32Array(2 * SHARED_TARGETS_MAX);
  // The engine uses the number to detect the last delivery of a connection, so it must be unique
  // across threads.
  let tx = TX_MIN * (1 + table.threadNumber);
  let needsImmediateWake = false;

  function send(bytes: Uint8Array, into: SendRecord): boolean {
    if (!table.isOpen || !table.refresh()) return false;
    const { count } = table;
    if (count === 0 || bytes.length === 0 || bytes.length > table.bytesMax) return false;
    for (let index = 0; index < count; index += 1) {
      const stream = table.nextStream(index);
      into.streams[index] = stream;
      deliveries[2 * index] = table.peers[index] ?? 0;
      deliveries[2 * index + 1] = stream;
    }
    tx += 1;
    const part = deliveries.subarray(0, 2 * count);
    const status = native.txSend(table.engine, part, bytes, tx, table.ttlMs, 0, 0);
    if (status <= 0) {
      table.close();
      return false;
    }
    into.version = table.version;
    into.count = count;
    into.status = status;
    into.corked = false;
    const all = (1 << count) - 1;
    // The sender queues deliveries that were rejected.
    needsImmediateWake = table.excluded > 0 || ((status | (status >>> 16)) & all) !== all;
    return true;
  }

  return {
    send,
    get needsImmediateWake() {
      return needsImmediateWake;
    },
  };
}
