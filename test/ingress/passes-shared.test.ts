/** Passes for limits that all edges share: where they are held, and what the main thread tells. */

import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys-file.ts";
import type { Gate } from "../../src/ingress/gate.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeStore } from "../support/limit-store.ts";
import { HERE } from "../support/owners.ts";
import { joinFront, keyRow, PLAN, passScene, passSceneOn } from "../support/passes.ts";

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
