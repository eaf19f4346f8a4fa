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

/** So many nodes with an address, and one without. */
const contactsOf = (count: number): readonly Contact[] => [
  ...Array.from({ length: count }, (_, index) => ({
    identity: `node${index}`,
    address: `10.0.0.${index}:8009`,
    version: null,
  })),
  { identity: "none", address: null, version: null },
];

function setUp(responses: (readonly Contact[] | Error | Promise<readonly Contact[]>)[]) {
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

  it("keeps its contacts for five minutes if a node knows less than half of them", async () => {
    const few = contactsOf(4);
    const responses = [contactsOf(9), ...Array.from({ length: 60 }, () => few)];
    const { clock, watcher, published, counters } = setUp(responses);
    watcher.start();
    await flushMicrotasks();
    for (let ms = 0; ms < 299_500; ms += 500) {
      clock.advance(500);
      await flushMicrotasks();
    }
    expect(published).toEqual([contactsOf(9)]);
    expect(counters.contactFailures).toBeGreaterThan(10);
    clock.advance(8_500);
    await flushMicrotasks();
    // By now it is the cluster that shrank.
    expect(published).toEqual([contactsOf(9), few]);
    watcher.stop();
  });

  it("drops a response that it requested from the cluster before", async () => {
    let respond = (_: readonly Contact[]): void => {};
    const late = new Promise<readonly Contact[]>((resolve) => {
      respond = resolve;
    });
    const { clock, watcher, published } = setUp([late, contactsOf(2)]);
    watcher.start();
    await flushMicrotasks();
    watcher.forget();
    respond(contactsOf(9));
    await flushMicrotasks();
    expect(published).toEqual([]);
    clock.advance(10_000);
    await flushMicrotasks();
    expect(published).toEqual([contactsOf(2)]);
    watcher.stop();
  });

  it("accepts half as many contacts, and any number from another cluster", async () => {
    const { clock, watcher, published } = setUp([contactsOf(9), contactsOf(5), contactsOf(1)]);
    watcher.start();
    await flushMicrotasks();
    clock.advance(60_000);
    await flushMicrotasks();
    expect(published).toEqual([contactsOf(9), contactsOf(5)]);
    watcher.forget();
    clock.advance(10_000);
    await flushMicrotasks();
    expect(published.at(-1)).toEqual(contactsOf(1));
    watcher.stop();
  });
});
