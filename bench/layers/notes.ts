/**
 * Measures what tracking adds to a transaction's path: reading the plan and opening a receipt; and
 * later recording the outcomes of two deliveries, sent and acknowledged. The store is at its limit,
 * so each new receipt evicts the oldest.
 */

import { strict as assert } from "node:assert";
import { systemClock } from "../../src/core/clock.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import type { Outcome } from "../../src/core/flow.ts";
import type { Decoder } from "../../src/decode/decoder.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { createRouter } from "../../src/route/router.ts";

const ENTRIES = 65_536;
const LEADERS = [1, 2, 3].map((fill) => encodeKey(new Uint8Array(32).fill(fill)));

/** The cost of tracking one transaction, in nanoseconds. */
export interface Noted {
  /** On its path: reading the plan and opening the receipt. */
  readonly openedNs: number;
  /** Later, on engine events: two deliveries were sent and acknowledged. */
  readonly followedNs: number;
}

export type Note = (bytes: Uint8Array, id: number) => Noted;

export function openNotes(decoder: Decoder): Note {
  const router = openRouter();
  const receipts = createReceipts(
    { clock: systemClock, slot: () => router.currentSlot() ?? 0 },
    { keepMs: 900_000, entriesMax: ENTRIES },
  );
  return (bytes, id) => {
    const accepted = decoder.decode(bytes);
    assert.equal(accepted.kind, "accepted");
    const startedNs = systemClock.nowNs();
    const send = router.plan?.send ?? [];
    const packet = { id, bytes, account: "bench", receivedNs: startedNs, ...PLAIN };
    receipts.open(packet, accepted, startedNs);
    const openedNs = systemClock.nowNs();
    for (const kind of ["sent", "acked"] as const) {
      for (const target of send) receipts.record(newsOf(id, kind, target, startedNs));
    }
    const followedNs = systemClock.nowNs();
    return { openedNs: openedNs - startedNs, followedNs: followedNs - openedNs };
  };
}

/** No retry limit, no priority. */
const PLAIN = { maxRetries: null, offeredLamports: 0 } as const;

type News = Pick<Outcome, "identity" | "address" | "slot">;

/** The engine stamps its events, so recording them reads no clock. */
function newsOf(packetId: number, kind: Outcome["kind"], target: News, atNs: number): Outcome {
  const { identity, address, slot } = target;
  const times = { atNs, rttUs: 900, connectionAgeMs: 4_000 };
  return { packetId, kind, identity, address, slot, reason: null, resend: 0, ...times };
}

/** A router that knows three leaders of four slots each, and sends to two. */
function openRouter() {
  const router = createRouter(
    { clock: systemClock, onPlan: () => undefined },
    { leaders: 2, warmWindows: 2 },
  );
  const slotsOf = (index: number): readonly number[] =>
    Array.from({ length: 144 }, (_, turn) =>
      [0, 1, 2, 3].map((at) => turn * 12 + index * 4 + at),
    ).flat();
  const leaders = new Map(LEADERS.map((identity, index) => [identity, slotsOf(index)]));
  router.setEpoch({ epoch: 0, firstSlot: 0, slots: 144 * 12, leaders });
  router.setContacts(
    LEADERS.map((identity, index) => ({ identity, address: `127.0.0.1:${9_000 + index}` })),
  );
  router.slotEvent("start", 400, "slot");
  router.start();
  assert.equal(router.plan?.send.length, 2);
  router.stop();
  return router;
}
