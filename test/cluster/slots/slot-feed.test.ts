import { describe, expect, it } from "vitest";
import { createChainCounters } from "../../../src/cluster/counters.ts";
import { createSlotFeed } from "../../../src/cluster/slots/slot-feed.ts";
import type { FeedEvents, FeedName } from "../../../src/cluster/slots/subscription.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

/** A feed on a node that does as it is told. */
function setUp(refused: readonly FeedName[] = [], rounds?: Clock) {
  const clock = createFakeClock();
  const counters = createChainCounters();
  const taken: string[] = [];
  const sources: string[] = [];
  const sessions: { events: FeedEvents; asked: FeedName[]; ended: boolean }[] = [];
  const node = { slot: 100 as number | null, slotTimeMs: 400 as number | null | undefined };
  const hints: number[] = [];
  const warnings: string[] = [];
  const feed = createSlotFeed(
    {
      clock,
      ...(rounds === undefined ? {} : { rounds }),
      counters,
      log: { ...SILENT_LOG, warn: (fields) => void warnings.push(JSON.stringify(fields)) },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      target: {
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
        openFeed(events) {
          const session = { events, asked: [] as FeedName[], ended: false };
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
  return { clock, counters, ...seen, node, feed, session, advance };
}

describe("the slot feed", () => {
  it("asks for the first slot at once, and then now and then while events come", async () => {
    const { feed, taken, session, advance } = setUp();
    feed.start();
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
    expect(feed.status()).toMatchObject({ source: "slotsUpdates", connected: true });
    feed.stop();
  });

  it("checks in rounds, and asks in between while no events come", async () => {
    const rounds = createFakeClock();
    const { feed, taken, advance } = setUp([], rounds);
    const polls = async (inRoundsMs: number, ms: number): Promise<number> => {
      const before = taken.length;
      rounds.advance(inRoundsMs);
      await advance(ms);
      return taken.length - before;
    };
    feed.start();
    await settle();
    // Nobody looks whether the feed is silent, nor asks, but in rounds.
    expect([await polls(0, 10_000), await polls(500, 400)]).toEqual([0, 1]);
    expect(await polls(0, 4_000)).toBe(10);
    feed.stop();
  });

  it("asks once for the slot time, and does without where the node does not tell it", async () => {
    for (const [told, hints] of [
      [400, [400]] as const,
      [null, []] as const,
      [undefined, []] as const,
    ]) {
      const { feed, node, hints: heard, advance } = setUp();
      node.slotTimeMs = told;
      feed.start();
      await advance(5000);
      expect(heard).toEqual(hints);
      feed.stop();
    }
  });

  it("asks for the first slot until it has it", async () => {
    const { feed, taken, node, advance, counters } = setUp();
    node.slot = null;
    feed.start();
    await advance(1500);
    expect(taken).toEqual([]);
    expect(counters.slotPollFailures).toBeGreaterThan(1);
    node.slot = 7;
    await advance(2000);
    expect(taken[0]).toBe("polled 7");
    feed.stop();
  });

  it("takes slot notifications where updates are refused", async () => {
    const { feed, session, counters } = setUp(["slotsUpdates"]);
    feed.start();
    session().events.opened();
    await settle();
    expect(session().asked).toEqual(["slotsUpdates", "slot"]);
    session().events.event("slot", "start", 101);
    expect(feed.status().source).toBe("slot");
    expect(counters.subscriptionsRefused).toBe(1);
    feed.stop();
  });

  it("polls at once where both are refused", async () => {
    const { feed, session, advance, taken } = setUp(["slotsUpdates", "slot"]);
    feed.start();
    session().events.opened();
    await advance(1700);
    expect(taken.length).toBeGreaterThanOrEqual(4);
    expect(feed.status()).toMatchObject({ source: "polling", connected: true });
    feed.stop();
  });

  it("takes every source that delivers, and says which one it is", async () => {
    const { feed, session, sources } = setUp();
    feed.start();
    await settle();
    session().events.opened();
    session().events.event("slot", "start", 101);
    expect(feed.status().source).toBe("slot");
    session().events.event("slotsUpdates", "start", 101);
    session().events.event("slot", "start", 102);
    expect(feed.status().source).toBe("slotsUpdates");
    expect(sources).toEqual(["polling", "slot", "slotsUpdates", "slot"]);
    feed.stop();
  });

  it("asks for the slot often while both feeds are silent, and else rarely", async () => {
    const { feed, session, advance, taken, counters } = setUp();
    feed.start();
    session().events.opened();
    await advance(2600);
    expect(session().asked).toEqual(["slotsUpdates", "slot"]);
    expect(feed.status().source).toBe("polling");
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
    feed.stop();
  });

  it("opens a silent connection anew, with back-off", async () => {
    const { feed, session, sessions, advance, counters } = setUp();
    feed.start();
    session().events.opened();
    await advance(20_600);
    expect(sessions[0]?.ended).toBe(true);
    expect(sessions).toHaveLength(1);
    await advance(500);
    expect(sessions).toHaveLength(2);
    expect(counters.socketsSilent).toBe(1);
    feed.stop();
  });

  it("gives up a connection that never opens", async () => {
    const { feed, sessions, advance } = setUp();
    feed.start();
    await advance(22_000);
    expect(sessions[0]?.ended).toBe(true);
    expect(sessions).toHaveLength(2);
    feed.stop();
  });

  it("comes back later each time, and soon again after an event", async () => {
    const { feed, session, sessions, advance } = setUp();
    feed.start();
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
    feed.stop();
  });

  it("says once why no slots come over the WebSocket, and again after they came", async () => {
    const { feed, session, sessions, warnings, advance } = setUp();
    feed.start();
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
    feed.stop();
  });

  it("tells a node that refuses both subscriptions from one that says nothing", async () => {
    for (const [refused, reason] of [
      [["slotsUpdates", "slot"] as const, "refuses both subscriptions"],
      [[] as const, "says nothing"],
    ] as const) {
      const { feed, session, warnings, advance } = setUp(refused);
      feed.start();
      session().events.opened();
      await advance(21_000);
      session().events.opened();
      await advance(21_000);
      expect(warnings).toEqual([expect.stringContaining(reason)]);
      feed.stop();
    }
  });

  it("ignores what an old connection still says", async () => {
    const { feed, session, advance, taken } = setUp();
    feed.start();
    await settle();
    const old = session();
    old.events.opened();
    old.events.closed();
    await advance(500);
    old.events.event("slotsUpdates", "start", 999);
    old.events.closed();
    expect(taken).not.toContain("start 999");
    feed.stop();
  });

  it("tells that nothing comes while the node is away", async () => {
    const { feed, session, node, advance } = setUp();
    feed.start();
    session().events.opened();
    session().events.event("slotsUpdates", "start", 101);
    node.slot = null;
    session().events.closed();
    await advance(10_000);
    const status = feed.status();
    expect(status).toMatchObject({ source: "none", connected: false });
    expect(status.eventAgeMs).toBeGreaterThanOrEqual(9_900);
    feed.stop();
  });

  it("leaves no timer and no connection behind when stopped", async () => {
    const { feed, clock, session, advance } = setUp(["slotsUpdates", "slot"]);
    feed.start();
    session().events.opened();
    await advance(3000);
    feed.stop();
    await settle();
    expect(session().ended).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
