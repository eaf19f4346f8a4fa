import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { createSlotWatcher } from "../../../src/cluster/slots/slot-watcher.ts";
import type {
  SlotSubscriberEvents,
  SlotSubscription,
} from "../../../src/cluster/slots/subscription.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

/** A watcher on a node that the test controls. */
function setUp(refused: readonly SlotSubscription[] = [], coalescedClock?: Clock) {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const taken: string[] = [];
  const sources: string[] = [];
  const sessions: { events: SlotSubscriberEvents; asked: SlotSubscription[]; ended: boolean }[] =
    [];
  const node = { slot: 100 as number | null, slotTimeMs: 400 as number | null | undefined };
  const hints: number[] = [];
  const warnings: string[] = [];
  const watcher = createSlotWatcher(
    {
      clock,
      ...(coalescedClock === undefined ? {} : { coalescedClock }),
      counters,
      log: { ...SILENT_LOG, warn: (fields) => void warnings.push(JSON.stringify(fields)) },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      sink: {
        slotEvent(kind, slot, source) {
          taken.push(`${kind} ${slot}`);
          sources.push(source);
        },
        slotTimeHint: (slotTimeMs) => void hints.push(slotTimeMs),
      },
      rpc: {
        async slot() {
          if (node.slot === null) throw new Error("away");
          return node.slot;
        },
        async slotTimeMs() {
          if (node.slotTimeMs === undefined) throw new Error("method not found");
          return node.slotTimeMs;
        },
        openSlotSubscriber(events) {
          const session = { events, asked: [] as SlotSubscription[], ended: false };
          sessions.push(session);
          return {
            async subscribe(name) {
              session.asked.push(name);
              return !refused.includes(name);
            },
            end: () => {
              session.ended = true;
            },
          };
        },
      },
    },
    { silenceMs: 2000, reconnectMs: 20_000, pollMs: 400, checkMs: 2000 },
  );
  const session = () => {
    const last = sessions.at(-1);
    if (last === undefined) throw new Error("no connection was opened");
    return last;
  };
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await settle();
    }
  };
  const seen = { taken, hints, sources, sessions, warnings };
  return { clock, counters, ...seen, node, watcher, session, advance };
}

describe("the slot feed", () => {
  it("asks for the first slot at once, and then now and then while events come", async () => {
    const { watcher, taken, session, advance } = setUp();
    watcher.start();
    await settle();
    expect(taken).toEqual(["polled 100"]);
    session().events.opened();
    for (let slot = 101; slot < 130; slot += 1) {
      session().events.event("slotsUpdates", "start", slot);
      await advance(300);
    }
    // Once at the start, and every other second of the 8.7 that pass.
    expect(taken.filter((each) => each.startsWith("polled"))).toHaveLength(5);
    expect(session().asked).toEqual(["slotsUpdates", "slot"]);
    expect(watcher.status()).toMatchObject({ source: "slotsUpdates", connected: true });
    watcher.stop();
  });

  it("checks in rounds, and asks in between while no events come", async () => {
    const coalescedClock = createFakeClock();
    const { watcher, taken, advance } = setUp([], coalescedClock);
    const polls = async (inRoundsMs: number, ms: number): Promise<number> => {
      const before = taken.length;
      coalescedClock.advance(inRoundsMs);
      await advance(ms);
      return taken.length - before;
    };
    watcher.start();
    await settle();
    // Silence checks and polls happen only in the coalesced clock's rounds.
    expect([await polls(0, 10_000), await polls(500, 400)]).toEqual([0, 1]);
    expect(await polls(0, 4_000)).toBe(10);
    watcher.stop();
  });

  it("asks once for the slot time, and does without where the node does not tell it", async () => {
    for (const [told, hints] of [
      [400, [400]] as const,
      [null, []] as const,
      [undefined, []] as const,
    ]) {
      const { watcher, node, hints: heard, advance } = setUp();
      node.slotTimeMs = told;
      watcher.start();
      await advance(5000);
      expect(heard).toEqual(hints);
      watcher.stop();
    }
  });

  it("asks for the first slot until it has it", async () => {
    const { watcher, taken, node, advance, counters } = setUp();
    node.slot = null;
    watcher.start();
    await advance(1500);
    expect(taken).toEqual([]);
    expect(counters.slotPollFailures).toBeGreaterThan(1);
    node.slot = 7;
    await advance(2000);
    expect(taken[0]).toBe("polled 7");
    watcher.stop();
  });

  it("takes slot notifications where updates are refused", async () => {
    const { watcher, session, counters } = setUp(["slotsUpdates"]);
    watcher.start();
    session().events.opened();
    await settle();
    expect(session().asked).toEqual(["slotsUpdates", "slot"]);
    session().events.event("slot", "start", 101);
    expect(watcher.status().source).toBe("slot");
    expect(counters.subscriptionsRefused).toBe(1);
    watcher.stop();
  });

  it("polls at once where both are refused", async () => {
    const { watcher, session, advance, taken } = setUp(["slotsUpdates", "slot"]);
    watcher.start();
    session().events.opened();
    await advance(1700);
    expect(taken.length).toBeGreaterThanOrEqual(4);
    expect(watcher.status()).toMatchObject({ source: "polling", connected: true });
    watcher.stop();
  });

  it("takes every source that delivers, and says which one it is", async () => {
    const { watcher, session, sources } = setUp();
    watcher.start();
    await settle();
    session().events.opened();
    session().events.event("slot", "start", 101);
    expect(watcher.status().source).toBe("slot");
    session().events.event("slotsUpdates", "start", 101);
    session().events.event("slot", "start", 102);
    expect(watcher.status().source).toBe("slotsUpdates");
    expect(sources).toEqual(["polling", "slot", "slotsUpdates", "slot"]);
    watcher.stop();
  });

  it("asks for the slot often while both feeds are silent, and else rarely", async () => {
    const { watcher, session, advance, taken, counters } = setUp();
    watcher.start();
    session().events.opened();
    await advance(2600);
    expect(session().asked).toEqual(["slotsUpdates", "slot"]);
    expect(watcher.status().source).toBe("polling");
    session().events.event("slot", "start", 109);
    await settle();
    expect(counters.slotPolls).toBeGreaterThanOrEqual(2);
    await advance(400);
    const polls = counters.slotPolls;
    for (let slot = 110; slot < 120; slot += 1) {
      session().events.event("slot", "start", slot);
      await advance(300);
    }
    expect(counters.slotPolls - polls).toBeLessThanOrEqual(2);
    expect(taken.at(-1)).toBe("start 119");
    watcher.stop();
  });

  it("opens a silent connection anew, with back-off", async () => {
    const { watcher, session, sessions, advance, counters } = setUp();
    watcher.start();
    session().events.opened();
    await advance(20_600);
    expect(sessions[0]?.ended).toBe(true);
    expect(sessions).toHaveLength(1);
    await advance(500);
    expect(sessions).toHaveLength(2);
    expect(counters.socketsSilent).toBe(1);
    watcher.stop();
  });

  it("gives up a connection that never opens", async () => {
    const { watcher, sessions, advance } = setUp();
    watcher.start();
    await advance(22_000);
    expect(sessions[0]?.ended).toBe(true);
    expect(sessions).toHaveLength(2);
    watcher.stop();
  });

  it("comes back later each time, and soon again after an event", async () => {
    const { watcher, session, sessions, advance } = setUp();
    watcher.start();
    session().events.opened();
    session().events.event("slotsUpdates", "start", 101);
    for (const waitMs of [500, 1000, 2000, 4000, 8000, 8000]) {
      const before = sessions.length;
      session().events.closed();
      await advance(waitMs - 100);
      expect(sessions).toHaveLength(before);
      await advance(100);
      expect(sessions).toHaveLength(before + 1);
    }
    session().events.opened();
    session().events.event("slotsUpdates", "start", 300);
    session().events.closed();
    const before = sessions.length;
    await advance(500);
    expect(sessions).toHaveLength(before + 1);
    watcher.stop();
  });

  it("says once why no slots come over the WebSocket, and again after they came", async () => {
    const { watcher, session, sessions, warnings, advance } = setUp();
    watcher.start();
    for (const waitMs of [500, 1000, 2000]) {
      session().events.closed();
      await advance(waitMs);
    }
    expect(sessions).toHaveLength(4);
    expect(warnings).toEqual([expect.stringContaining("could not be connected to")]);
    session().events.opened();
    session().events.event("slotsUpdates", "start", 101);
    session().events.closed();
    await advance(500);
    session().events.opened();
    session().events.closed();
    expect(warnings).toEqual([warnings[0], expect.stringContaining("ended")]);
    watcher.stop();
  });

  it("tells a node that refuses both subscriptions from one that says nothing", async () => {
    for (const [refused, reason] of [
      [["slotsUpdates", "slot"] as const, "refuses both subscriptions"],
      [[] as const, "says nothing"],
    ] as const) {
      const { watcher, session, warnings, advance } = setUp(refused);
      watcher.start();
      session().events.opened();
      await advance(21_000);
      session().events.opened();
      await advance(21_000);
      expect(warnings).toEqual([expect.stringContaining(reason)]);
      watcher.stop();
    }
  });

  it("ignores what an old connection still says", async () => {
    const { watcher, session, advance, taken } = setUp();
    watcher.start();
    await settle();
    const old = session();
    old.events.opened();
    old.events.closed();
    await advance(500);
    old.events.event("slotsUpdates", "start", 999);
    old.events.closed();
    expect(taken).not.toContain("start 999");
    watcher.stop();
  });

  it("tells that nothing comes while the node is away", async () => {
    const { watcher, session, node, advance } = setUp();
    watcher.start();
    session().events.opened();
    session().events.event("slotsUpdates", "start", 101);
    node.slot = null;
    session().events.closed();
    await advance(10_000);
    const status = watcher.status();
    expect(status).toMatchObject({ source: "none", connected: false });
    expect(status.eventAgeMs).toBeGreaterThanOrEqual(9_900);
    watcher.stop();
  });

  it("leaves no timer and no connection behind when stopped", async () => {
    const { watcher, clock, session, advance } = setUp(["slotsUpdates", "slot"]);
    watcher.start();
    session().events.opened();
    await advance(3000);
    watcher.stop();
    await settle();
    expect(session().ended).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
