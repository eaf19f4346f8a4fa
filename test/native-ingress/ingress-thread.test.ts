/** One ingress thread as the main thread manages it: its start options, and its cached keys. */

import { describe, expect, it } from "vitest";
import type { KeyGrant } from "../../src/limits/key-cache-entry.ts";
import { NO_LIMIT_SLOT } from "../../src/limits/thread-limit-states.ts";
import {
  INGRESS_THREAD_OPTIONS,
  KEY_GRANT_NUMBERS,
  NO_PRIORITY,
} from "../../src/native/contract.ts";
import { recordsMemory } from "../../src/native-ingress/record-ring.ts";
import { ingressThreadCountersMemory } from "../../src/native-ingress/thread-counters.ts";
import { faultOf, fixture, KEY_GRANT, shared, started, UPSTREAM_PORT } from "./fixture.ts";

describe("an ingress thread that starts", () => {
  it("receives its index, its options and its upstream port", () => {
    const { ingressThreads, threads } = fixture();
    ingressThreads.start(UPSTREAM_PORT);
    const common = {
      engine: 7,
      decoder: 1,
      realtime: false,
      connectionsMax: 10,
      upstreamConnectionsMax: 5,
    };
    const bounds = {
      upstreamConnectionsPerAddress: 3,
      readTimeoutMs: 10_000,
      idleTimeoutMs: 75_000,
    };
    const options = {
      ...common,
      ...bounds,
      upstreamPort: UPSTREAM_PORT,
      forwardedHeader: "x-relayed",
    };
    expect(threads.map((thread) => thread.options)).toEqual([
      { ...options, number: 0 },
      { ...options, number: 1 },
    ]);
  });

  it("receives all memory: its own records and counters, and what all share", () => {
    const { ingressThreads, memory, threads } = fixture();
    ingressThreads.start(UPSTREAM_PORT);
    for (const { memory: given } of threads) {
      for (const part of Object.values(given)) expect(part.length).toBe(shared(part).byteLength);
      expect(given.records.length).toBe(recordsMemory().byteLength);
      expect(given.counters.length).toBe(ingressThreadCountersMemory().byteLength);
      expect(shared(given.targets)).toBe(memory.targets);
      expect(shared(given.dedup)).toBe(memory.dedup);
      expect(shared(given.limitStates)).toBe(memory.keyCache);
    }
    for (const part of ["records", "counters"] as const) {
      expect(new Set(threads.map(({ memory: given }) => shared(given[part]))).size).toBe(2);
    }
  });

  it.each([
    [NO_PRIORITY, /^host\.realtime: .*CAP_SYS_NICE.*LimitRTPRIO.*--ulimit rtprio/],
    [INGRESS_THREAD_OPTIONS, /^http\.threads: a thread could not be started, .* returned -80$/],
    [0, /^http\.threads: /],
  ])("reports what is required when the engine returns %d", (answer, words) => {
    const { engine, ingressThreads } = fixture(1);
    engine.startResults = [answer];
    expect(faultOf(() => ingressThreads.start(UPSTREAM_PORT)).message).toMatch(words);
  });
});

describe("a cached key of an ingress thread", () => {
  const LIMITED: KeyGrant = {
    ...KEY_GRANT,
    token: "another",
    plan: { name: "P", ratePerSecond: 50.5, burst: 100, shared: true },
    limit: { ratePerSecond: 0.5, burst: 2 },
    expiresUnixMs: 1_790_000_000_000,
    ranges: ["10.0.0.0/8", "2001:db8::/32"],
    isGlobal: true,
    accountLimitSlot: 8,
    keyLimitSlot: 9,
    keySlot: 4,
  };

  it.each([
    ["that nothing narrows", KEY_GRANT, [3, 1, 1, 0, 0, NO_LIMIT_SLOT, -1, -1, -1, 0], ""],
    [
      "that all of it narrows",
      LIMITED,
      [4, 50.5, 100, 1, 8, 9, 0.5, 2, 1_790_000_000_000, 1],
      "10.0.0.0/8,2001:db8::/32",
    ],
    [
      "that may be used from nowhere",
      { ...KEY_GRANT, ranges: [] },
      [3, 1, 1, 0, 0, NO_LIMIT_SLOT, -1, -1, -1, 1],
      "",
    ],
  ])("%s is passed as numbers", async (_, grant, numbers, ranges) => {
    const { ingressThreads, holders, threads } = fixture();
    ingressThreads.start(UPSTREAM_PORT);
    holders[1]?.post({ kind: "grant", grant });
    expect(threads.map(({ keyCache }) => keyCache)).toEqual([
      [],
      [{ token: grant.token, plan: grant.plan.name, numbers, ranges }],
    ]);
    expect(numbers).toHaveLength(KEY_GRANT_NUMBERS);
    await ingressThreads.stop();
  });

  it("identifies its key, also when the slot was another's before", async () => {
    const { ingressThreads, holders, thread, accounting } = started(1);
    thread(0).note(10);
    ingressThreads.reconcile();
    holders[0]?.post({ kind: "grant", grant: { ...KEY_GRANT, account: "other" } });
    thread(0).note(11);
    await ingressThreads.stop();
    expect(accounting).toEqual(["acme 10", "other 11"]);
  });

  it("counts what was sent with it for its account and the plan of its last grant", async () => {
    const { ingressThreads, holders, thread, accounting } = started(1);
    thread(0).noteSent();
    ingressThreads.reconcile();
    const plan = { ...KEY_GRANT.plan, name: "Q" };
    holders[0]?.post({ kind: "grant", grant: { ...KEY_GRANT, plan } });
    thread(0).noteSent();
    await ingressThreads.stop();
    expect(accounting).toEqual(["acme P", "acme Q"]);
  });

  it("is revoked by its key and its slot", async () => {
    const { ingressThreads, holders, threads } = started();
    holders[0]?.post({ kind: "revoke", token: "t", keySlot: 3 });
    expect(threads.map(({ revokedKeys }) => revokedKeys)).toEqual([
      [{ token: "t", keySlot: 3 }],
      [],
    ]);
    expect(holders[0]?.returned).toEqual([]);
    await ingressThreads.stop();
  });

  it("is returned with all others, however many the thread has released", async () => {
    const { ingressThreads, holders, thread } = started(1);
    const keySlots = Array.from({ length: 1_000 }, (_, keySlot) => keySlot);
    thread(0).returned.push(...keySlots);
    thread(0).wake();
    expect(holders[0]?.returned.map(({ keySlot }) => keySlot)).toEqual(keySlots);
    await ingressThreads.stop();
  });

  it("is returned also when the thread reports it with its exit", async () => {
    const { ingressThreads, holders, thread } = started(1);
    thread(0).returned.push(KEY_GRANT.keySlot);
    await ingressThreads.stop();
    expect(holders[0]).toMatchObject({ returned: [{ keySlot: 3 }], left: true });
  });
});
