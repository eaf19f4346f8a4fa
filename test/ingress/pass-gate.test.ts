import { MessageChannel, Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys-file.ts";
import { networksOf } from "../../src/accounts/restriction.ts";
import { systemClock } from "../../src/core/clock.ts";
import { LimitCells, NO_CELL, passMarks, passMemory } from "../../src/ingress/limit-cells.ts";
import type { Pass, PassReturned } from "../../src/ingress/pass.ts";
import { createPassGate, passPlaceOf } from "../../src/ingress/pass-gate.ts";
import { SharedCells } from "../../src/ingress/shared-cells.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeStore } from "../support/limit-store.ts";
import { from, HERE, keyOwner } from "../support/owners.ts";
import { keyRow, passSceneOn } from "../support/passes.ts";
import { until } from "../support/wait.ts";

const SECOND = 1_000_000_000;
const TOKEN = "0123456789abcdef";
const plan = { name: "P", ratePerSecond: 1, burst: 3, shared: false };

function passOf(change: Partial<Pass> = {}): Pass {
  return {
    ...{ token: TOKEN, keyId: "0".repeat(32), account: "a", plan },
    ...{ expiresUnixMs: null, ranges: null, limit: null },
    ...{ isShared: false, accountCell: 4, keyCell: NO_CELL, place: 7 },
    ...change,
  };
}

function scene(pass: Partial<Pass> = {}) {
  const clock = createFakeClock();
  const memory = passMemory();
  const returned: PassReturned[] = [];
  const port = { post: (message: PassReturned) => void returned.push(message) };
  const gate = createPassGate({ clock, memory, networksOf, port });
  gate.put(passOf(pass));
  const owner = () => {
    const found = gate.find(TOKEN, HERE);
    if (found === null) throw new Error("no owner");
    return found;
  };
  const rest = { cells: new LimitCells(memory), shared: new SharedCells(memory) };
  return { clock, gate, returned, owner, marks: passMarks(memory), ...rest };
}

describe("find", () => {
  it("knows whom it has a pass of, as the main thread's gate does, and nobody else", () => {
    const { gate, owner, marks } = scene();
    expect(gate.find(`${TOKEN}x`, HERE)).toBeNull();
    expect(gate.find("", HERE)).toBeNull();
    expect(marks[7]).toBe(0);
    expect(owner()).toMatchObject(keyOwner("a", plan));
    expect(marks[7]).toBe(1);
    expect(gate.counters).toMatchObject({ passes: 1, keysUnknown: 0, keysMissing: 0 });
  });

  it("knows nobody from the moment at which the key ends", () => {
    const end = createFakeClock().unixMs() + 1_000;
    const { gate, clock, marks } = scene({ expiresUnixMs: end });
    clock.advance(999);
    expect(gate.find(TOKEN, HERE)).not.toBeNull();
    marks.fill(0);
    clock.advance(1);
    expect(gate.find(TOKEN, HERE)).toBeNull();
    // It is of no use any more.
    expect(marks[7]).toBe(0);
  });

  it("knows it from its networks alone", () => {
    const { gate } = scene({ ranges: ["10.0.0.0/8", "2001:db8::/32"] });
    for (const address of ["10.255.0.1", "2001:db8::7", "::ffff:10.1.1.1"]) {
      expect(gate.find(TOKEN, from(address))?.account).toBe("a");
    }
    for (const address of ["11.0.0.1", "2001:db9::1", ""]) {
      expect(gate.find(TOKEN, from(address))).toBeNull();
    }
    expect(gate.counters.keysBarred).toBe(0);
  });

  it("tells whoever asks all the same that the key is unknown", () => {
    expect(scene().gate.refusalOf(TOKEN, HERE)).toMatchObject({ reason: "unauthorized" });
  });
});

describe("a pass that is taken back", () => {
  it("lets nobody in, also who was found before, and is returned", () => {
    const { gate, owner, returned, cells } = scene();
    const found = owner();
    expect(gate.charge(found, SECOND)).toBe(0);
    gate.take({ kind: "passOver", token: TOKEN, place: 7 });
    expect(gate.find(TOKEN, HERE)).toBeNull();
    expect(gate.charge(found, SECOND)).toBe(1);
    expect(cells.fullNsOf(4)).toBe(2 * SECOND);
    expect(returned).toEqual([{ kind: "passReturned", place: 7 }]);
    expect(gate.counters.passes).toBe(0);
  });

  it("is another one than that which came meanwhile", () => {
    const { gate, owner, returned } = scene();
    const found = owner();
    gate.take({ kind: "pass", pass: passOf({ place: 9, plan: { ...plan, burst: 1 } }) });
    expect(gate.charge(found, SECOND)).toBe(1);
    gate.takeBack(TOKEN, 7);
    gate.takeBack("nobody has this", 8);
    expect(owner().plan.burst).toBe(1);
    expect(returned.map(({ place }) => place)).toEqual([7, 8]);
  });
});

describe("the place of a pass", () => {
  it("is that of the pass until it is taken back, and none for anybody else", () => {
    const { gate, owner } = scene();
    const found = owner();
    expect(passPlaceOf(found)).toBe(7);
    gate.takeBack(TOKEN, 7);
    // A body may come after that.
    expect(passPlaceOf(found)).toBe(-1);
    expect(passPlaceOf(keyOwner("a", plan))).toBe(-1);
  });
});

describe("charge", () => {
  it("lets through what the plan says, and leaves what it refuses to the main thread", () => {
    const { gate, owner, cells } = scene();
    const found = owner();
    expect([1, 2, 3, 4].map(() => gate.charge(found, SECOND))).toEqual([0, 0, 0, SECOND]);
    expect(cells.fullNsOf(4)).toBe(4 * SECOND);
    expect(gate.limitedBy).toBe("account");
    expect(gate.charge(found, 2 * SECOND)).toBe(0);
    expect(gate.counters).toMatchObject({ admitted: 4, limited: 0, overLimit: 1 });
  });

  it("holds a key's own limit beside the account's; neither is charged by a refusal", () => {
    const limit = { ratePerSecond: 0.5, burst: 2 };
    const { gate, owner, cells } = scene({ limit, keyCell: 5 });
    const found = owner();
    expect([1, 2, 3].map(() => gate.charge(found, SECOND))).toEqual([0, 0, 2 * SECOND]);
    expect(gate.limitedBy).toBe("key");
    expect([4, 5].map((cell) => cells.fullNsOf(cell))).toEqual([3 * SECOND, 5 * SECOND]);
    // Another key of the account uses up what all of them have together.
    cells.tryCharge(4, 3 * SECOND, SECOND, 1);
    cells.tryCharge(4, 3 * SECOND, SECOND, 3);
    cells.tryCharge(4, 3 * SECOND, SECOND, 3);
    expect(gate.charge(found, 3 * SECOND)).toBe(SECOND);
    expect(gate.limitedBy).toBe("account");
    expect([4, 5].map((cell) => cells.fullNsOf(cell))).toEqual([6 * SECOND, 5 * SECOND]);
  });

  it("charges a limit that all edges share where it is counted, as the others do", () => {
    const limit = { ratePerSecond: 0.5, burst: 2 };
    const { gate, owner, cells, shared } = scene({ limit, keyCell: 5, isShared: true });
    shared.setSharers(1);
    const found = owner();
    expect([1, 2, 3].map(() => gate.charge(found, SECOND))).toEqual([0, 0, 2 * SECOND]);
    expect(gate.limitedBy).toBe("key");
    expect([shared.countOf(4), shared.fullNsOf(4)]).toEqual([2, 3 * SECOND]);
    // What has the same number among the limits of this edge alone is another's.
    expect(cells.fullNsOf(4)).toBe(0);
    for (const nowNs of [3 * SECOND, 3 * SECOND, 3 * SECOND]) shared.tryCharge(4, nowNs, plan);
    expect(gate.charge(found, 3 * SECOND)).toBe(SECOND);
    expect(gate.limitedBy).toBe("account");
    // Neither is charged by a refusal, and that is not told to anybody either.
    expect([shared.countOf(4), cells.fullNsOf(5)]).toEqual([5, 5 * SECOND]);
    shared.setSharers(3);
    expect(gate.charge(found, 6 * SECOND)).toBe(0);
    expect(gate.charge(found, 6 * SECOND)).toBe(3 * SECOND);
  });

  it("lets in nobody whom it did not find itself", () => {
    const { gate } = scene();
    const foreign = keyOwner("a", plan);
    expect(gate.charge(foreign, SECOND)).toBe(1);
    expect(gate.counters.admitted).toBe(0);
  });
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
