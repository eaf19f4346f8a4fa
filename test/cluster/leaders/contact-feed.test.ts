import { describe, expect, it } from "vitest";
import { createChainCounters } from "../../../src/cluster/counters.ts";
import { createContactFeed } from "../../../src/cluster/leaders/contact-feed.ts";
import type { Contact } from "../../../src/cluster/target.ts";
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
  const counters = createChainCounters();
  const warnings: string[] = [];
  const set: (readonly Contact[])[] = [];
  let calls = 0;
  const feed = createContactFeed(
    {
      clock,
      counters,
      log: {
        info: () => undefined,
        warn: (_f, text) => warnings.push(text),
        error: () => undefined,
      },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      target: { setContacts: (contacts) => void set.push(contacts) },
      rpc: {
        async contacts() {
          const answer = answers[calls] ?? GOOD;
          calls += 1;
          if (answer instanceof Error) throw answer;
          return answer;
        },
      },
    },
    { refreshMs: 60_000 },
  );
  return { clock, counters, warnings, set, feed };
}

describe("the contact feed", () => {
  it("hands on the list, and again with each refresh", async () => {
    const { clock, feed, set } = setUp([]);
    feed.start();
    await settle();
    clock.advance(60_000);
    await settle();
    expect(set).toEqual([GOOD, GOOD]);
    feed.stop();
  });

  it("keeps what is known when the node is away or knows nobody, and says so once", async () => {
    const nobody = [{ identity: "A", address: null, version: null }];
    const { clock, feed, set, warnings, counters } = setUp([GOOD, new Error("away"), nobody, []]);
    feed.start();
    for (const waitMs of [60_000, 500, 1000]) {
      await settle();
      clock.advance(waitMs);
    }
    await settle();
    expect(set).toHaveLength(1);
    expect(feed.status().failures).toBe(3);
    expect(warnings).toHaveLength(1);
    expect(counters).toMatchObject({ contactFetches: 4, contactFailures: 3 });
    clock.advance(2000);
    await settle();
    expect(set).toHaveLength(2);
    feed.stop();
    expect(clock.pending).toBe(0);
  });
});
