/**
 * What a front does to send a transaction, on the thread of its test: for tests of the side that is
 * told of it afterwards (`Sender.recordSend`). The real one is `native/src/submit/fan_out.rs`.
 *
 * It goes by the table of routes that the sender keeps in shared memory, and each copy's stream is
 * drawn from the count that all threads share. It holds nothing to send it together with others.
 */

import { SHARED_TARGETS_MAX } from "../../src/core/limits.ts";
import type { NativeSending } from "../../src/native/contract.ts";
import { INGRESS_TX_MIN } from "../../src/send/limits.ts";
import type { SendRecord } from "../../src/send/native/send-record.ts";
import { TargetTable } from "./target-table.ts";

/** `STALL_COUNT` of native/src/submit/fan_out.rs. */
const ROUTES_STALL_COUNT = 16;

export interface IngressSender {
  /**
   * Sends to every route and writes `into`. False where that cannot be done now: nothing of it is
   * sent or will be, and the sender's own thread has to take it.
   */
  send(bytes: Uint8Array, into: SendRecord): boolean;
  /**
   * Whether the sender is to hear of what was sent last at once: it has copies of it to place for
   * leaders that are connected, or has to look at the routes before anything more is sent.
   */
  readonly needsImmediateWake: boolean;
}

/** `memory` is the SharedTargetTable' one. */
export function createIngressSender(
  native: Pick<NativeSending, "txSend">,
  memory: SharedArrayBuffer,
): IngressSender {
  const table = new TargetTable(memory);
  const deliveries = new Uint32Array(2 * SHARED_TARGETS_MAX);
  // The engine tells by the number whether a connection's last copy was this one, so no other
  // thread may have it.
  let tx = INGRESS_TX_MIN * (1 + table.threadNumber);
  /** Transactions in a row of which a copy had to wait, or was not taken. */
  let waited = 0;
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
    const status = native.txSend(table.engine, part, bytes, tx, table.ttlMs);
    if (status <= 0) {
      table.close();
      return false;
    }
    into.version = table.version;
    into.count = count;
    into.status = status;
    into.corked = false;
    const all = (1 << count) - 1;
    // Whoever did not take its copy is given it by the sender.
    needsImmediateWake = table.excluded > 0 || ((status | (status >>> 16)) & all) !== all;
    if (isStalled(status !== all)) needsImmediateWake = true;
    return true;
  }

  /**
   * Copies that wait for a leader's credit, some in a row: who pays best is to go first then, so
   * the sender looks at who it is, and leaves that one out.
   */
  function isStalled(waits: boolean): boolean {
    waited = waits ? waited + 1 : 0;
    if (waited < ROUTES_STALL_COUNT) return false;
    waited = 0;
    table.close();
    return true;
  }

  return {
    send,
    get needsImmediateWake() {
      return needsImmediateWake;
    },
  };
}
