import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import { createContactWatcher } from "../../../src/cluster/leaders/contact-watcher.ts";
import type { Contact } from "../../../src/cluster/ports.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

async function flushMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

const CONTACTS: readonly Contact[] = [
  { identity: "A", address: "10.0.0.1:8009", version: "4.3.0" },
  { identity: "B", address: null, version: null },
];

function setUp(responses: (readonly Contact[] | Error)[]) {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const warnings: string[] = [];
  const published: (readonly Contact[])[] = [];
  let calls = 0;
  const watcher = createContactWatcher(
    {
      clock,
      counters,
      log: {
        info: () => undefined,
        warn: (_fields, text) => warnings.push(text),
        error: () => undefined,
      },
      backOff: { firstMs: 500, maxMs: 8000, random: () => 1 },
      sink: { setContacts: (contacts) => void published.push(contacts) },
      rpc: {
        async contacts() {
          const response = responses[calls] ?? CONTACTS;
          calls += 1;
          if (response instanceof Error) throw response;
          return response;
        },
      },
    },
    { intervalMs: 60_000 },
  );
  return { clock, counters, warnings, published, watcher };
}

describe("contact watcher", () => {
  it("publishes the contacts at the start and after each refresh", async () => {
    const { clock, watcher, published } = setUp([]);
    watcher.start();
    await flushMicrotasks();
    clock.advance(60_000);
    await flushMicrotasks();
    expect(published).toEqual([CONTACTS, CONTACTS]);
    watcher.stop();
  });

  it("keeps its contacts and warns once if the node is down or lists no address", async () => {
    const unreachable = [{ identity: "A", address: null, version: null }];
    const { clock, watcher, published, warnings, counters } = setUp([
      CONTACTS,
      new Error("unavailable"),
      unreachable,
      [],
    ]);
    watcher.start();
    for (const waitMs of [60_000, 500, 1000]) {
      await flushMicrotasks();
      clock.advance(waitMs);
    }
    await flushMicrotasks();
    expect(published).toHaveLength(1);
    expect(warnings).toHaveLength(1);
    expect(counters).toMatchObject({ contactFetches: 4, contactFailures: 3 });
    clock.advance(2000);
    await flushMicrotasks();
    expect(published).toHaveLength(2);
    watcher.stop();
    expect(clock.pending).toBe(0);
  });
});
