/**
 * What a front does to send a transaction, on the thread of its test: for tests of the side that is
 * told of it afterwards (`Sender.adopt`). The real one is `native/src/submit/fan_out.rs`.
 *
 * It goes by the table of routes that the sender keeps in shared memory, and each copy's stream is
 * drawn from the count that all threads share. It holds nothing to send it together with others.
 */

import { ROUTES_SHARED_MAX } from "../../src/core/limits.ts";
import type { NativeSending } from "../../src/native/contract.ts";
import { FRONT_TX_MIN } from "../../src/send/limits.ts";
import type { FrontSend } from "../../src/send/native/send-record.ts";
import { RouteTable } from "./route-table.ts";

/** `HELD_UP` of native/src/submit/fan_out.rs. */
const ROUTES_HELD_UP = 16;

export interface FrontSender {
  /**
   * Sends to every route and writes `into`. False where that cannot be done now: nothing of it is
   * sent or will be, and the sender's own thread has to take it.
   */
  send(bytes: Uint8Array, into: FrontSend): boolean;
  /**
   * Whether the sender is to hear of what was sent last at once: it has copies of it to place for
   * leaders that are connected, or has to look at the routes before anything more is sent.
   */
  readonly isUrgent: boolean;
}

/** `memory` is the SharedRoutes' one. */
export function createFrontSender(
  native: Pick<NativeSending, "txSend">,
  memory: SharedArrayBuffer,
): FrontSender {
  const table = new RouteTable(memory);
  const copies = new Uint32Array(2 * ROUTES_SHARED_MAX);
  // The engine tells by the number whether a connection's last copy was this one, so no other
  // thread may have it.
  let tx = FRONT_TX_MIN * (1 + table.front);
  /** Transactions in a row of which a copy had to wait, or was not taken. */
  let waited = 0;
  let isUrgent = false;

  function send(bytes: Uint8Array, into: FrontSend): boolean {
    if (!table.isOpen || !table.refresh()) return false;
    const { count } = table;
    if (count === 0 || bytes.length === 0 || bytes.length > table.bytesMax) return false;
    for (let route = 0; route < count; route += 1) {
      const stream = table.nextStream(route);
      into.streams[route] = stream;
      copies[2 * route] = table.peers[route] ?? 0;
      copies[2 * route + 1] = stream;
    }
    tx += 1;
    const part = copies.subarray(0, 2 * count);
    const mask = native.txSend(table.engine, part, bytes, tx, table.ttlMs);
    if (mask <= 0) {
      table.close();
      return false;
    }
    into.version = table.version;
    into.count = count;
    into.mask = mask;
    into.held = false;
    const all = (1 << count) - 1;
    // Whoever did not take its copy is given it by the sender.
    isUrgent = table.leftOut > 0 || ((mask | (mask >>> 16)) & all) !== all;
    if (isHeldUp(mask !== all)) isUrgent = true;
    return true;
  }

  /**
   * Copies that wait for a leader's credit, some in a row: who pays best is to go first then, so
   * the sender looks at who it is, and leaves that one out.
   */
  function isHeldUp(waits: boolean): boolean {
    waited = waits ? waited + 1 : 0;
    if (waited < ROUTES_HELD_UP) return false;
    waited = 0;
    table.close();
    return true;
  }

  return {
    send,
    get isUrgent() {
      return isUrgent;
    },
  };
}
