/**
 * The migration to Alpenglow, on a virtual cluster with the edge's router and landing: where a
 * transaction lands that leaders acknowledged while blocks held votes only.
 */

import { describe, expect, it } from "vitest";
import type { Packet, Plan, ResendTo, Target } from "../../src/core/flow.ts";
import { createDedupCache } from "../../src/dedup/recent-transactions.ts";
import { deliveryGateOf } from "../../src/engine/delivery-gate.ts";
import { createLanding } from "../../src/landing/landing.ts";
import { createRouter } from "../../src/route/router.ts";
import { ACCEPTED, bytesOf, OPTIONS } from "../landing/fixture.ts";
import { epochOf } from "../support/epochs.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const SLOT_MS = 250;
/** Time until a delivery is at its leader. */
const WIRE_MS = 40;
/** The first slot whose block holds votes only, and how many of them there are. */
const VOTES_FROM = 100;
const VOTE_SLOTS = 60;

interface Migration {
  /** The leaders of the windows, in turns. */
  readonly names: string;
  /** How many slot numbers are used again. */
  readonly again: number;
  /** How many slots before the first one that takes transactions it is submitted. */
  readonly before: number;
  /** Whether what the cluster thread reports of the confirmation reaches router and landing. */
  readonly isWatched: boolean;
}

/** The slots of the virtual cluster, in the order in which they begin. */
function slotsOf(again: number): { readonly slot: number; readonly takes: boolean }[] {
  const last = VOTES_FROM + VOTE_SLOTS - 1;
  return [
    ...Array.from({ length: VOTES_FROM - 40 }, (_, at) => ({ slot: 40 + at, takes: true })),
    ...Array.from({ length: VOTE_SLOTS }, (_, at) => ({ slot: VOTES_FROM + at, takes: false })),
    ...Array.from({ length: 60 }, (_, at) => ({ slot: last + 1 - again + at, takes: true })),
  ];
}

/** In which slot the transaction lands, counted from the first that takes transactions. */
function slotsUntilLanded({ names, again, before, isWatched }: Migration): number {
  const clock = createFakeClock();
  const dedup = createDedupCache();
  /** When each leader received a copy that it still has. */
  const held = new Map<string, number>();
  let plan: Plan = { slot: 0, send: [], warm: [] };
  const deliver = ({ identity }: Target) => {
    const atMs = clock.nowNs() / 1e6 + WIRE_MS;
    if (!held.has(identity)) held.set(identity, atMs);
  };
  const resender = {
    roomFor: (to: Pick<ResendTo, "wants">) =>
      plan.send.some((target) => to.wants(target)) ? ("room" as const) : ("none" as const),
    resend(_: Packet, to: ResendTo) {
      const targets = plan.send.filter((target) => to.wants(target) && to.mayLeave());
      for (const target of targets) {
        to.accepted(target, false);
        deliver(target);
      }
      return targets.length;
    },
  };
  const landing = createLanding(
    {
      ...{ clock, resender, deliveryGate: deliveryGateOf(dedup) },
      log: { info() {}, warn() {}, error() {} },
      cluster: {
        blockHeight: () => 1_000,
        currentSlot: (atNs) => router.currentSlot(atNs),
        lastValidHeight: () => 1_150,
        fetchStatuses: () => new Promise(() => {}),
        statusReporting: () => "unknown",
        contentOf: () => "unknown",
      },
      ...{ onFinalState() {}, onProcessed() {}, onRolledBack() {} },
    },
    OPTIONS,
  );
  const router = createRouter(
    {
      clock,
      onPlan(next) {
        plan = next ?? plan;
        landing.usePlan(plan);
      },
      onSlotBack: () => isWatched && landing.slotWentBack(),
    },
    { leaders: 2, warmWindows: 4 },
  );
  router.setAlpenglow(true);
  router.slotTimeHint(SLOT_MS);
  router.setContacts([...names].map((name, at) => ({ identity: name, address: `10.0.0.${at}:1` })));
  router.setEpoch(epochOf(1, 0, names.repeat(96 / names.length)));
  router.start();
  landing.start();
  const slots = slotsOf(again);
  const first = VOTES_FROM - 40 + VOTE_SLOTS;
  for (const [index, { slot, takes }] of slots.entries()) {
    router.slotEvent("start", slot);
    if (isWatched && index === first - VOTE_SLOTS + 8) {
      router.setConfirmationStalled(true);
      landing.setConfirmationStalled(true);
    }
    if (index === first - before) {
      const bytes = bytesOf(1);
      const packet = { id: 1, bytes, account: "a", receivedNs: clock.nowNs(), maxRetries: null };
      dedup.insert(bytes, 1, clock.nowNs());
      landing.track({ ...packet, offeredLamports: 1 }, ACCEPTED, clock.nowNs(), "Beta");
      for (const target of plan.send) deliver(target);
    }
    clock.advance(SLOT_MS);
    const leader = names.charAt(Math.floor(slot / 4) % names.length);
    // A leader takes what it has when its slot ends.
    const has = (held.get(leader) ?? Number.POSITIVE_INFINITY) <= clock.nowNs() / 1e6;
    if (has && takes) return index - first;
    // What was acknowledged until blocks take transactions is lost.
    if (index === first - 1) held.clear();
  }
  return Number.POSITIVE_INFINITY;
}

/** The worst case of 24 times of submission. */
function worst(names: string, again: number, isWatched: boolean): number {
  const befores = Array.from({ length: 24 }, (_, at) => at + 1);
  return Math.max(
    ...befores.map((before) => slotsUntilLanded({ names, again, before, isWatched })),
  );
}

describe("a transaction that leaders acknowledged before blocks take transactions", () => {
  const [few, many] = ["AB", "ABCDEFGHJKLM"];
  // The slots with marks that stay, and with cleared ones.
  it.each([
    [few, 0, 8, 1],
    [few, 40, 8, 1],
    [many, 0, 4, 1],
    [many, 8, 3, 1],
    [many, 40, 3, 1],
    [many, 48, 4, 1],
  ])("with leaders %s and %d slots used again, lands in slot %d, now %d", (...given) => {
    const [names, again, before, now] = given;
    expect([worst(names, again, false), worst(names, again, true)]).toEqual([before, now]);
  });
});
