/** One front as the main thread has it: what it is started with, and its passes. */

import { describe, expect, it } from "vitest";
import type { Pass } from "../../src/limits/key-cache-entry.ts";
import { NO_CELL } from "../../src/limits/shared-state.ts";
import { FRONT_OPTIONS, NO_PRIORITY, PASS_NUMBERS } from "../../src/native/contract.ts";
import { recordsMemory } from "../../src/native-ingress/record-ring.ts";
import { frontFiguresMemory } from "../../src/native-ingress/thread-counters.ts";
import { BEHIND_PORT, faultOf, PASS, rig, shared, started } from "../front/rig.ts";

describe("a front that starts", () => {
  it("is told who it is, what it uses and where it relays to", () => {
    const { fronts, threads } = rig();
    fronts.start(BEHIND_PORT);
    const common = { engine: 7, decoder: 1, realtime: false, connectionsMax: 10, relaysMax: 5 };
    const bounds = { relaysPerAddress: 3, readTimeoutMs: 10_000 };
    const options = { ...common, ...bounds, behindPort: BEHIND_PORT, relayHeader: "x-relayed" };
    expect(threads.map((thread) => thread.options)).toEqual([
      { ...options, number: 0 },
      { ...options, number: 1 },
    ]);
  });

  it("is given all of each memory: records and figures of its own, and what all share", () => {
    const { fronts, memory, threads } = rig();
    fronts.start(BEHIND_PORT);
    for (const { memory: given } of threads) {
      for (const part of Object.values(given)) expect(part.length).toBe(shared(part).byteLength);
      expect(given.records.length).toBe(recordsMemory().byteLength);
      expect(given.figures.length).toBe(frontFiguresMemory().byteLength);
      expect(shared(given.routes)).toBe(memory.routes);
      expect(shared(given.seen)).toBe(memory.seen);
      expect(shared(given.passes)).toBe(memory.passes);
    }
    for (const part of ["records", "figures"] as const) {
      expect(new Set(threads.map(({ memory: given }) => shared(given[part]))).size).toBe(2);
    }
  });

  it.each([
    [NO_PRIORITY, /^host\.realtime: .*CAP_SYS_NICE.*LimitRTPRIO.*--ulimit rtprio/],
    [FRONT_OPTIONS, /^http\.threads: a thread could not be started, .* answers -80$/],
    [0, /^http\.threads: /],
  ])("says what it takes where the engine answers %d", (answer, words) => {
    const { engine, fronts } = rig(1);
    engine.startAnswers = [answer];
    expect(faultOf(() => fronts.start(BEHIND_PORT)).message).toMatch(words);
  });
});

describe("a pass of a front", () => {
  const LIMITED: Pass = {
    ...PASS,
    token: "another",
    plan: { name: "P", ratePerSecond: 50.5, burst: 100, shared: true },
    limit: { ratePerSecond: 0.5, burst: 2 },
    expiresUnixMs: 1_790_000_000_000,
    ranges: ["10.0.0.0/8", "2001:db8::/32"],
    isShared: true,
    accountCell: 8,
    keyCell: 9,
    place: 4,
  };

  it.each([
    ["that nothing narrows", PASS, [3, 1, 1, 0, 0, NO_CELL, -1, -1, -1, 0], ""],
    [
      "that all of it narrows",
      LIMITED,
      [4, 50.5, 100, 1, 8, 9, 0.5, 2, 1_790_000_000_000, 1],
      "10.0.0.0/8,2001:db8::/32",
    ],
    [
      "that may be used from nowhere",
      { ...PASS, ranges: [] },
      [3, 1, 1, 0, 0, NO_CELL, -1, -1, -1, 1],
      "",
    ],
  ])("%s is told in numbers", async (_, pass, numbers, ranges) => {
    const { fronts, holders, threads } = rig();
    fronts.start(BEHIND_PORT);
    holders[1]?.post({ kind: "pass", pass });
    expect(threads.map(({ passes }) => passes)).toEqual([
      [],
      [{ token: pass.token, numbers, ranges }],
    ]);
    expect(numbers).toHaveLength(PASS_NUMBERS);
    await fronts.stop();
  });

  it("says whose key it is, also where the place was another's before", async () => {
    const { fronts, holders, thread, books } = started(1);
    thread(0).note(10);
    fronts.adopt();
    holders[0]?.post({ kind: "pass", pass: { ...PASS, account: "other" } });
    thread(0).note(11);
    await fronts.stop();
    expect(books).toEqual(["acme 10", "other 11"]);
  });

  it("is taken back by its key and its place", async () => {
    const { fronts, holders, threads } = started();
    holders[0]?.post({ kind: "passOver", token: "t", place: 3 });
    expect(threads.map(({ passesOver }) => passesOver)).toEqual([[{ token: "t", place: 3 }], []]);
    expect(holders[0]?.returned).toEqual([]);
    await fronts.stop();
  });

  it("is returned with all others, however many the front has given back", async () => {
    const { fronts, holders, thread } = started(1);
    const places = Array.from({ length: 1_000 }, (_, place) => place);
    thread(0).returned.push(...places);
    thread(0).wake();
    expect(holders[0]?.returned.map(({ place }) => place)).toEqual(places);
    await fronts.stop();
  });

  it("is returned also where the front says so with its end", async () => {
    const { fronts, holders, thread } = started(1);
    thread(0).returned.push(PASS.place);
    await fronts.stop();
    expect(holders[0]).toMatchObject({ returned: [{ place: 3 }], left: true });
  });
});
