import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { createSlotWatcher } from "../../../src/cluster/slots/slot-watcher.ts";
import type {
  SlotSubscriberEvents,
  SlotSubscription,
} from "../../../src/cluster/slots/subscription.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createSourceLog } from "./source-log.ts";

const SILENCE_MS = 2000;
const SILENT_LOG = { info: () => undefined, warn: () => undefined, error: () => undefined };

async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

/** A watcher on a node that the test controls. */
function setUp(rejected: readonly SlotSubscription[] = [], coalescedClock?: Clock) {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const slots: string[] = [];
  const sources: string[] = [];
  const sourceLog = createSourceLog(clock, SILENCE_MS);
  const sessions: { events: SlotSubscriberEvents; names: SlotSubscription[]; ended: boolean }[] =
    [];
  const node = { slot: 100 as number | null, slotTimeMs: 400 as number | null | undefined };
  const hints: number[] = [];
  const warnings: string[] = [];
  const watcher = createSlotWatcher(
    {
      clock,
      coalescedClock: coalescedClock ?? clock,
      onBack: () => undefined,
      counters,
      log: { ...SILENT_LOG, warn: (fields) => void warnings.push(JSON.stringify(fields)) },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      sink: {
        slotEvent(kind, slot, source) {
          slots.push(`${kind} ${slot}`);
          sources.push(source);
          sourceLog.note(source);
        },
        slotTimeHint: (slotTimeMs) => void hints.push(slotTimeMs),
      },
      rpc: {
        async slot() {
          if (node.slot === null) throw new Error("unavailable");
          return node.slot;
        },
        async slotTimeMs() {
          if (node.slotTimeMs === undefined) throw new Error("method not found");
          return node.slotTimeMs;
        },
        openSlotSubscriber(events) {
          const session = { events, names: [] as SlotSubscription[], ended: false };
          sessions.push(session);
          return {
            async subscribe(name) {
              session.names.push(name);
              return !rejected.includes(name);
            },
            end: () => {
              session.ended = true;
            },
          };
        },
      },
    },
    { silenceMs: SILENCE_MS, reconnectMs: 20_000, pollMs: 400, checkMs: 2000 },
  );
  const session = () => {
    const latest = sessions.at(-1);
    if (latest === undefined) throw new Error("no connection was opened");
    return latest;
  };
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await flushMicrotasks();
    }
  };
  const status = () => ({
    source: sourceLog.best(),
    connected: counters.socketsOpened > counters.socketsClosed,
    eventAgeMs: sourceLog.eventAgeMs(),
  });
  const records = { slots, hints, sources, status, sessions, warnings };
  return { clock, counters, ...records, node, watcher, session, advance };
}

describe("slot watcher", () => {
  it("polls the first slot immediately, then every 2 s while events come", async () => {
    const { watcher, status, slots, session, advance } = setUp();
    watcher.start();
    await flushMicrotasks();
    expect(slots).toEqual(["polled 100"]);
    session().events.opened();
    for (let slot = 101; slot < 130; slot += 1) {
      session().events.event("slotsUpdates", "start", slot);
      await advance(300);
    }
    // One poll at the start, then one every 2 s in the 8.7 s that pass.
    expect(slots.filter((each) => each.startsWith("polled"))).toHaveLength(5);
    expect(session().names).toEqual(["slotsUpdates", "slot"]);
    expect(status()).toMatchObject({ source: "slotsUpdates", connected: true });
    watcher.stop();
  });

  it("checks on the coalesced clock, and polls on its own clock while no events come", async () => {
    const coalescedClock = createFakeClock();
    const { watcher, slots, advance } = setUp([], coalescedClock);
    const polls = async (coalescedMs: number, ms: number): Promise<number> => {
      const before = slots.length;
      coalescedClock.advance(coalescedMs);
      await advance(ms);
      return slots.length - before;
    };
    watcher.start();
    await flushMicrotasks();
    // The coalesced clock alone starts the checks that detect silence.
    expect([await polls(0, 10_000), await polls(500, 400)]).toEqual([0, 1]);
    expect(await polls(0, 4_000)).toBe(10);
    watcher.stop();
  });

  it("requests the slot time once, and works without it", async () => {
    for (const [reported, hints] of [
      [400, [400]] as const,
      [null, []] as const,
      [undefined, []] as const,
    ]) {
      const { watcher, node, hints: received, advance } = setUp();
      node.slotTimeMs = reported;
      watcher.start();
      await advance(5000);
      expect(received).toEqual(hints);
      watcher.stop();
    }
  });

  it("retries the first slot poll until it succeeds", async () => {
    const { watcher, slots, node, advance, counters } = setUp();
    node.slot = null;
    watcher.start();
    await advance(1500);
    expect(slots).toEqual([]);
    expect(counters.slotPollFailures).toBeGreaterThan(1);
    node.slot = 7;
    await advance(2000);
    expect(slots[0]).toBe("polled 7");
    watcher.stop();
  });

  it("uses slotSubscribe if the node rejects slotsUpdatesSubscribe", async () => {
    const { watcher, status, session, counters } = setUp(["slotsUpdates"]);
    watcher.start();
    session().events.opened();
    await flushMicrotasks();
    expect(session().names).toEqual(["slotsUpdates", "slot"]);
    session().events.event("slot", "start", 101);
    expect(status().source).toBe("slot");
    expect(counters.subscriptionsRefused).toBe(1);
    watcher.stop();
  });

  it("polls immediately if the node rejects both subscriptions", async () => {
    const { watcher, status, session, advance, slots } = setUp(["slotsUpdates", "slot"]);
    watcher.start();
    session().events.opened();
    await advance(1700);
    expect(slots.length).toBeGreaterThanOrEqual(4);
    expect(status()).toMatchObject({ source: "polling", connected: true });
    watcher.stop();
  });

  it("accepts events from every source, and reports the preferred one", async () => {
    const { watcher, status, session, sources } = setUp();
    watcher.start();
    await flushMicrotasks();
    session().events.opened();
    session().events.event("slot", "start", 101);
    expect(status().source).toBe("slot");
    session().events.event("slotsUpdates", "start", 101);
    session().events.event("slot", "start", 102);
    expect(status().source).toBe("slotsUpdates");
    expect(sources).toEqual(["polling", "slot", "slotsUpdates", "slot"]);
    watcher.stop();
  });

  it("polls often while both subscriptions are silent, rarely otherwise", async () => {
    const { watcher, status, session, advance, slots, counters } = setUp();
    watcher.start();
    session().events.opened();
    await advance(2600);
    expect(session().names).toEqual(["slotsUpdates", "slot"]);
    expect(status().source).toBe("polling");
    session().events.event("slot", "start", 109);
    await flushMicrotasks();
    expect(counters.slotPolls).toBeGreaterThanOrEqual(2);
    await advance(400);
    const polls = counters.slotPolls;
    for (let slot = 110; slot < 120; slot += 1) {
      session().events.event("slot", "start", slot);
      await advance(300);
    }
    expect(counters.slotPolls - polls).toBeLessThanOrEqual(2);
    expect(slots.at(-1)).toBe("start 119");
    watcher.stop();
  });

  it("reopens a silent connection, with back-off", async () => {
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

  it("times out a connection that never opens", async () => {
    const { watcher, sessions, advance } = setUp();
    watcher.start();
    await advance(22_000);
    expect(sessions[0]?.ended).toBe(true);
    expect(sessions).toHaveLength(2);
    watcher.stop();
  });

  it("doubles the reconnect delay up to 8 s, and resets it after an event", async () => {
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

  it("logs once why the WebSocket delivers no slots, and again after an event", async () => {
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

  it("distinguishes rejected subscriptions from silence in its warning", async () => {
    for (const [rejected, reason] of [
      [["slotsUpdates", "slot"] as const, "refuses both subscriptions"],
      [[] as const, "says nothing"],
    ] as const) {
      const { watcher, session, warnings, advance } = setUp(rejected);
      watcher.start();
      session().events.opened();
      await advance(21_000);
      session().events.opened();
      await advance(21_000);
      expect(warnings).toEqual([expect.stringContaining(reason)]);
      watcher.stop();
    }
  });

  it("ignores events of a closed connection", async () => {
    const { watcher, session, advance, slots } = setUp();
    watcher.start();
    await flushMicrotasks();
    const old = session();
    old.events.opened();
    old.events.closed();
    await advance(500);
    old.events.event("slotsUpdates", "start", 999);
    old.events.closed();
    expect(slots).not.toContain("start 999");
    watcher.stop();
  });

  it("reports source none and the event age while the node is down", async () => {
    const { watcher, status, session, node, advance } = setUp();
    watcher.start();
    session().events.opened();
    session().events.event("slotsUpdates", "start", 101);
    node.slot = null;
    session().events.closed();
    await advance(10_000);
    expect(status()).toMatchObject({ source: "none", connected: false });
    expect(status().eventAgeMs).toBeGreaterThanOrEqual(9_900);
    watcher.stop();
  });

  it("polls when a source goes back, once each time and at most each 400 ms", async () => {
    const { watcher, session, advance, counters } = setUp();
    watcher.start();
    session().events.opened();
    session().events.event("slotsUpdates", "start", 101);
    await advance(1_000);
    const before = counters.slotPolls;
    watcher.observe(101, "grpc");
    for (const slot of [100, 97, 102]) watcher.observe(slot, "grpc");
    await flushMicrotasks();
    expect(counters.slotPolls - before).toBe(0);
    for (const slot of [97, 98, 99]) watcher.observe(slot, "grpc");
    await flushMicrotasks();
    expect(counters.slotPolls - before).toBe(1);
    // The others are where they were.
    watcher.observe(99, "slot");
    for (let at = 0; at < 10; at += 1) {
      await advance(100);
      watcher.observe(at % 2 === 0 ? 50 : 200, "slotsUpdates");
      session().events.event("slotsUpdates", "start", 300 + at);
    }
    await flushMicrotasks();
    expect(counters.slotPolls - before).toBeLessThanOrEqual(4);
    expect(counters.slotPolls - before).toBeGreaterThanOrEqual(3);
    watcher.stop();
    watcher.observe(1, "grpc");
  });

  it("polls 400 ms after the last poll when a source goes back sooner than that", async () => {
    const { watcher, session, advance, counters } = setUp();
    watcher.start();
    session().events.opened();
    watcher.observe(101, "grpc");
    await advance(100);
    const before = counters.slotPolls;
    watcher.observe(50, "grpc");
    session().events.event("slotsUpdates", "start", 51);
    await advance(200);
    expect(counters.slotPolls - before).toBe(0);
    await advance(100);
    expect(counters.slotPolls - before).toBe(1);
    await advance(1_900);
    session().events.event("slotsUpdates", "start", 52);
    expect(counters.slotPolls - before).toBe(1);
    watcher.stop();
  });

  it("cancels its timers and ends its connection when stopped", async () => {
    const { watcher, clock, session, advance } = setUp(["slotsUpdates", "slot"]);
    watcher.start();
    session().events.opened();
    await advance(3000);
    watcher.stop();
    await flushMicrotasks();
    expect(session().ended).toBe(true);
    expect(clock.pending).toBe(0);
  });
});
