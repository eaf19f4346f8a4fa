import { describe, expect, it } from "vitest";
import { createClusterCounters } from "../../../src/cluster/counters.ts";
import { createContactWatcher } from "../../../src/cluster/leaders/contact-watcher.ts";
import type { Contact } from "../../../src/cluster/ports.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

const GOOD: readonly Contact[] = [
  { identity: "A", address: "10.0.0.1:8009", version: "4.3.0" },
  { identity: "B", address: null, version: null },
];

function setUp(answers: (readonly Contact[] | Error)[]) {
  const clock = createFakeClock();
  const counters = createClusterCounters();
  const warnings: string[] = [];
  const set: (readonly Contact[])[] = [];
  let calls = 0;
  const watcher = createContactWatcher(
    {
      clock,
      counters,
      log: {
        info: () => undefined,
        warn: (_f, text) => warnings.push(text),
        error: () => undefined,
      },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      sink: { setContacts: (contacts) => void set.push(contacts) },
      rpc: {
        async contacts() {
          const answer = answers[calls] ?? GOOD;
          calls += 1;
          if (answer instanceof Error) throw answer;
          return answer;
        },
      },
    },
    { intervalMs: 60_000 },
  );
  return { clock, counters, warnings, set, watcher };
}

describe("the contact feed", () => {
  it("hands on the list, and again with each refresh", async () => {
    const { clock, watcher, set } = setUp([]);
    watcher.start();
    await settle();
    clock.advance(60_000);
    await settle();
    expect(set).toEqual([GOOD, GOOD]);
    watcher.stop();
  });

  it("keeps what is known when the node is away or knows nobody, and says so once", async () => {
    const unreachable = [{ identity: "A", address: null, version: null }];
    const { clock, watcher, set, warnings, counters } = setUp([
      GOOD,
      new Error("away"),
      unreachable,
      [],
    ]);
    watcher.start();
    for (const waitMs of [60_000, 500, 1000]) {
      await settle();
      clock.advance(waitMs);
    }
    await settle();
    expect(set).toHaveLength(1);
    expect(watcher.status().failures).toBe(3);
    expect(warnings).toHaveLength(1);
    expect(counters).toMatchObject({ contactFetches: 4, contactFailures: 3 });
    clock.advance(2000);
    await settle();
    expect(set).toHaveLength(2);
    watcher.stop();
    expect(clock.pending).toBe(0);
  });
});
