/** Passes for limits that all edges share, and for threads that use one limit at the same time. */

import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Gate } from "../../src/limits/gate.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeStore } from "../support/limit-store.ts";
import { HERE } from "../support/owners.ts";
import { joinFront, keyRow, PLAN, passScene, passSceneOn } from "../support/passes.ts";
import { until } from "../support/wait.ts";

const TOKEN = "token-of-account-a";
const OTHER = "other-of-account-a";
const STRANGER = "token-of-account-b";

function sharedIn({ news }: ReturnType<typeof joinFront>): readonly boolean[] {
  return news.flatMap((message) => (message.kind === "pass" ? [message.pass.isShared] : []));
}

describe("a pass of a plan that all edges share", () => {
  it("says whether all edges share the limit, which they do where there is a store", () => {
    const plan = { ...PLAN, name: "S", shared: true };
    const rows = [keyRow(TOKEN, "a", { plan }), keyRow(STRANGER, "b")];
    const clock = createFakeClock();
    const scene = passSceneOn(clock, rows, createFakeStore(clock));
    const [front, alone] = [joinFront(scene), joinFront(passScene(rows))];
    for (const token of [TOKEN, STRANGER]) {
      front.ask(token);
      alone.ask(token);
    }
    expect(sharedIn(front)).toEqual([true, false]);
    expect(sharedIn(alone)).toEqual([false, false]);
    expect([scene.shared?.size, scene.held.heldCount]).toEqual([1, 1]);
  });

  it("is one over all edges, too, in its cell and out of it", async () => {
    const plan = { ...PLAN, shared: true };
    const rows = [keyRow(TOKEN, "a", { plan }), keyRow(OTHER, "a", { plan })];
    const clock = createFakeClock();
    const store = createFakeStore(clock);
    const scene = passSceneOn(clock, rows, store);
    scene.sharedLimits?.start();
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    const front = joinFront(scene);
    const charge = (gate: Gate, token: string) => {
      const owner = gate.find(token, HERE);
      return owner === null ? null : gate.charge(owner, clock.nowNs());
    };
    expect(charge(scene.gate, TOKEN)).toBe(0);
    for (const token of [TOKEN, OTHER]) front.ask(token);
    front.deliver();
    expect([charge(front.gate, TOKEN), charge(scene.gate, OTHER)]).toEqual([0, 0]);
    const wait = charge(front.gate, OTHER);
    expect(wait).toBeGreaterThan(0);
    expect(charge(scene.gate, TOKEN)).toBe(wait);
    // One of its keys is no more: the other one still holds it.
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    front.deliver();
    expect([scene.shared?.size, charge(front.gate, OTHER)]).toEqual([1, wait]);
    front.holder.leave();
    expect([scene.shared?.size, charge(scene.gate, OTHER)]).toEqual([0, wait]);
    clock.advance(100);
    await Promise.resolve();
    expect(store.told).toBe(3);
    expect(scene.held.heldCount).toBe(0);
  });

  it.each([true, false])(
    "moves a limit that is shared (%s) to where it is otherwise",
    async (was) => {
      const plan = { ...PLAN, shared: was };
      const clock = createFakeClock();
      const store = createFakeStore(clock);
      const scene = passSceneOn(clock, [keyRow(TOKEN, "a", { plan })], store);
      const [first, late] = [joinFront(scene), joinFront(scene)];
      const holds = () => [scene.shared?.size, scene.held.heldCount];
      const own = (isShared: boolean) => (isShared ? [1, 0] : [0, 1]);
      for (const front of [first, late]) {
        front.ask(TOKEN);
        front.deliver();
      }
      expect(holds()).toEqual(own(was));
      scene.keys.put(keyRow(TOKEN, "a", { plan: { ...plan, shared: !was } }));
      await Promise.resolve();
      first.deliver();
      first.ask(TOKEN);
      first.deliver();
      // The late one charges what it knows until it is told.
      expect(holds()).toEqual([1, 1]);
      late.deliver();
      expect(holds()).toEqual(own(!was));
      expect(first.gate.counters.passes + late.gate.counters.passes).toBe(1);
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
    const main = passSceneOn(systemClock, rows, shared ? store : null);
    main.sharedLimits?.start();
    const held = () => main.held.heldCount + (main.shared?.size ?? 0);
    const fronts = [1, 2].map(() => {
      const { port1, port2 } = new MessageChannel();
      const words = new Int32Array(new SharedArrayBuffer(3 * 4));
      const workerData = { memory: main.memory, words, token: TOKEN, port: port2 };
      const entry = new URL("../support/pass-front.mjs", import.meta.url);
      const worker = new Worker(entry, { workerData, transferList: [port2] });
      const holder = main.passes.join({ post: (message) => port1.postMessage(message) });
      port1.on("message", (message) => holder.take(message));
      return { holder, words, end: () => worker.terminate().then(() => port1.close()) };
    });
    const total = (word: number) => fronts.reduce((sum, { words }) => sum + (words[word] ?? 0), 0);
    await until("two threads", () => fronts.every(({ words }) => (words[UNKNOWN] ?? 0) > 0));
    const known = main.gate.find(TOKEN, HERE);
    if (known === null) throw new Error("no owner");
    for (const { holder } of fronts) holder.grant(TOKEN, known);
    let mine = 0;
    await until("a limit that is used up", () => {
      for (let i = 0; i < 20; i += 1) {
        if (main.gate.charge(known, systemClock.nowNs()) === 0) mine += 1;
      }
      const isRefused = fronts.every(({ words }) => (words[REFUSED] ?? 0) > 0);
      return isRefused && (!shared || store.told >= slow.burst);
    });
    const admitted = mine + total(ADMITTED);
    expect(admitted).toBeLessThanOrEqual(slow.burst);
    // Each of them may have been seen when it had counted what it was then refused.
    expect(admitted).toBeGreaterThanOrEqual(slow.burst - (shared ? fronts.length : 0));
    // By whom is the scheduler's choice.
    expect(total(ADMITTED)).toBeGreaterThan(0);
    main.keys.remove(tokenSha256(TOKEN));
    await until("both to have returned it", () => held() === 0);
    const unknown = total(UNKNOWN);
    const refused = total(REFUSED);
    await until("requests after that", () => total(UNKNOWN) > unknown + 100);
    expect(total(REFUSED)).toBe(refused);
    // What was used up by all is used up here.
    expect(main.gate.charge(known, systemClock.nowNs())).toBeGreaterThan(0);
    await main.sharedLimits?.stop();
    await Promise.all(fronts.map(({ end }) => end()));
  });
});
