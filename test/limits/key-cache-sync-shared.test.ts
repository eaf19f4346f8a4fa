/** Key grants for limits that all edges share, and for threads that use one limit concurrently. */

import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { AccessControl } from "../../src/limits/access-control.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import {
  joinThread,
  keyCacheFixture,
  keyCacheFixtureOn,
  keyRow,
  PLAN,
} from "../support/key-cache.ts";
import { createFakeStore } from "../support/limit-store.ts";
import { HERE } from "../support/principals.ts";
import { until } from "../support/wait.ts";

const TOKEN = "token-of-account-a";
const OTHER = "other-of-account-a";
const STRANGER = "token-of-account-b";

function sharedIn({ updates }: ReturnType<typeof joinThread>): readonly boolean[] {
  return updates.flatMap((message) => (message.kind === "grant" ? [message.grant.isGlobal] : []));
}

describe("a pass of a plan that all edges share", () => {
  it("states whether all edges share the limit, as they do with a store", () => {
    const plan = { ...PLAN, name: "S", shared: true };
    const rows = [keyRow(TOKEN, "a", { plan }), keyRow(STRANGER, "b")];
    const clock = createFakeClock();
    const scene = keyCacheFixtureOn(clock, rows, createFakeStore(clock));
    const [thread, alone] = [joinThread(scene), joinThread(keyCacheFixture(rows))];
    for (const token of [TOKEN, STRANGER]) {
      thread.ask(token);
      alone.ask(token);
    }
    expect(sharedIn(thread)).toEqual([true, false]);
    expect(sharedIn(alone)).toEqual([false, false]);
    expect([scene.globalDelegation?.size, scene.delegated.delegatedCount]).toEqual([1, 1]);
  });

  it("is one over all edges, too, in its cell and out of it", async () => {
    const plan = { ...PLAN, shared: true };
    const rows = [keyRow(TOKEN, "a", { plan }), keyRow(OTHER, "a", { plan })];
    const clock = createFakeClock();
    const store = createFakeStore(clock);
    const scene = keyCacheFixtureOn(clock, rows, store);
    scene.globalLimits?.start();
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    const thread = joinThread(scene);
    const charge = (access: AccessControl, token: string) => {
      const principal = access.authenticate(token, HERE);
      return principal === null ? null : access.charge(principal, clock.nowNs());
    };
    expect(charge(scene.access, TOKEN)).toBe(0);
    for (const token of [TOKEN, OTHER]) thread.ask(token);
    thread.deliver();
    expect([charge(thread.access, TOKEN), charge(scene.access, OTHER)]).toEqual([0, 0]);
    const wait = charge(thread.access, OTHER);
    expect(wait).toBeGreaterThan(0);
    expect(charge(scene.access, TOKEN)).toBe(wait);
    // One of its keys is removed: the other one still holds the slot.
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    thread.deliver();
    expect([scene.globalDelegation?.size, charge(thread.access, OTHER)]).toEqual([1, wait]);
    thread.holder.leave();
    expect([scene.globalDelegation?.size, charge(scene.access, OTHER)]).toEqual([0, wait]);
    clock.advance(100);
    await Promise.resolve();
    expect(store.told).toBe(3);
    expect(scene.delegated.delegatedCount).toBe(0);
  });

  it.each([true, false])(
    "moves a limit that is shared (%s) to where it is otherwise",
    async (was) => {
      const plan = { ...PLAN, shared: was };
      const clock = createFakeClock();
      const store = createFakeStore(clock);
      const scene = keyCacheFixtureOn(clock, [keyRow(TOKEN, "a", { plan })], store);
      const [first, late] = [joinThread(scene), joinThread(scene)];
      const delegation = () => [scene.globalDelegation?.size, scene.delegated.delegatedCount];
      const own = (isGlobal: boolean) => (isGlobal ? [1, 0] : [0, 1]);
      for (const thread of [first, late]) {
        thread.ask(TOKEN);
        thread.deliver();
      }
      expect(delegation()).toEqual(own(was));
      scene.keys.put(keyRow(TOKEN, "a", { plan: { ...plan, shared: !was } }));
      await Promise.resolve();
      first.deliver();
      first.ask(TOKEN);
      first.deliver();
      // The late thread charges what it knows until it is notified.
      expect(delegation()).toEqual([1, 1]);
      late.deliver();
      expect(delegation()).toEqual(own(!was));
      expect(first.access.counters.cachedKeys + late.access.counters.cachedKeys).toBe(1);
    },
  );
});

describe("threads with a pass of one key", () => {
  it.each([
    ["this edge", false],
    ["all edges", true],
  ])("let through what its plan says for %s, all together, until it is over", async (_, shared) => {
    const [ADMITTED, REFUSED, UNKNOWN] = [0, 1, 2];
    const slow = { name: "P", ratePerSecond: 0.001, burst: 20_000, shared };
    const store = createFakeStore(systemClock);
    const rows = [keyRow(TOKEN, "a", { plan: slow })];
    const main = keyCacheFixtureOn(systemClock, rows, shared ? store : null);
    main.globalLimits?.start();
    const delegated = () => main.delegated.delegatedCount + (main.globalDelegation?.size ?? 0);
    const threads = [1, 2].map(() => {
      const { port1, port2 } = new MessageChannel();
      const words = new Int32Array(new SharedArrayBuffer(3 * 4));
      const workerData = { memory: main.memory, words, token: TOKEN, port: port2 };
      const entry = new URL("../support/key-cache-thread.mjs", import.meta.url);
      const worker = new Worker(entry, { workerData, transferList: [port2] });
      const holder = main.keyCache.join({ post: (message) => port1.postMessage(message) });
      port1.on("message", (message) => holder.onReturned(message));
      return { holder, words, end: () => worker.terminate().then(() => port1.close()) };
    });
    const total = (word: number) => threads.reduce((sum, { words }) => sum + (words[word] ?? 0), 0);
    await until("two threads", () => threads.every(({ words }) => (words[UNKNOWN] ?? 0) > 0));
    const known = main.access.authenticate(TOKEN, HERE);
    if (known === null) throw new Error("no owner");
    for (const { holder } of threads) holder.grant(TOKEN, known);
    let mine = 0;
    await until("a limit that is used up", () => {
      for (let i = 0; i < 20; i += 1) {
        if (main.access.charge(known, systemClock.nowNs()) === 0) mine += 1;
      }
      const isRefused = threads.every(({ words }) => (words[REFUSED] ?? 0) > 0);
      return isRefused && (!shared || store.told >= slow.burst);
    });
    const allowed = mine + total(ADMITTED);
    expect(allowed).toBeLessThanOrEqual(slow.burst);
    // Each thread may have been sampled after it counted a request and before it rejected it.
    expect(allowed).toBeGreaterThanOrEqual(slow.burst - (shared ? threads.length : 0));
    // The scheduler decides which thread.
    expect(total(ADMITTED)).toBeGreaterThan(0);
    main.keys.remove(tokenSha256(TOKEN));
    await until("both to have returned it", () => delegated() === 0);
    const unknown = total(UNKNOWN);
    const refused = total(REFUSED);
    await until("requests after that", () => total(UNKNOWN) > unknown + 100);
    expect(total(REFUSED)).toBe(refused);
    // What all threads used up is used up here.
    expect(main.access.charge(known, systemClock.nowNs())).toBeGreaterThan(0);
    await main.globalLimits?.stop();
    await Promise.all(threads.map(({ end }) => end()));
  });
});
