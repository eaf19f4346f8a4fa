import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { networksOf } from "../../src/accounts/keys/restriction.ts";
import {
  PASS_PLACE_MS,
  PASSES_A_TURN,
  PASSES_BACK_A_TURN,
  PASSES_MAX,
} from "../../src/limits/bounds.ts";
import type { Pass } from "../../src/limits/key-cache-entry.ts";
import { createPasses } from "../../src/limits/key-cache-sync.ts";
import { NO_CELL } from "../../src/limits/shared-state.ts";
import { HERE } from "../support/owners.ts";
import { joinFront, keyRow, PLAN, passScene } from "../support/passes.ts";

const TOKEN = "token-of-account-a";
const OTHER = "other-of-account-a";
const STRANGER = "token-of-account-b";
const nth = (number: number): string => `token number ${number}`.padEnd(20, "x");

/** What a thread was told, without taking it away. */
function passesIn({ news }: ReturnType<typeof joinFront>): readonly Pass[] {
  return news.flatMap((message) => (message.kind === "pass" ? [message.pass] : []));
}

describe("a pass", () => {
  it("says whose the key is, what narrows it, and where its limits are", () => {
    const networks = networksOf(["10.0.0.0/8"]);
    const limit = { ratePerSecond: 1, burst: 2 };
    const restriction = { expiresUnixMs: 1_900_000_000_000, networks, limit };
    const scene = passScene([keyRow(TOKEN), keyRow(OTHER, "a", { restriction })]);
    const front = joinFront(scene);
    const narrowed = scene.keys.lookup(tokenSha256(OTHER));
    front.ask(TOKEN);
    if (narrowed !== null) front.holder.grant(OTHER, narrowed);
    const [plain, other] = passesIn(front);
    expect(plain).toEqual({
      token: TOKEN,
      keyId: keyRow(TOKEN).keyId,
      account: "a",
      plan: PLAN,
      ...{ expiresUnixMs: null, ranges: null, limit: null },
      isShared: false,
      accountCell: plain?.accountCell,
      keyCell: NO_CELL,
      place: plain?.place,
    });
    expect(other).toMatchObject({
      expiresUnixMs: 1_900_000_000_000,
      ranges: ["10.0.0.0/8"],
      limit,
    });
    expect(other?.accountCell).toBe(plain?.accountCell);
    expect(other?.place).not.toBe(plain?.place);
    expect([NO_CELL, plain?.accountCell]).not.toContain(other?.keyCell);
    expect(scene.held.heldCount).toBe(2);
  });

  it("is given once to each thread that asks", () => {
    const scene = passScene([keyRow(TOKEN)]);
    const [first, second] = [joinFront(scene), joinFront(scene)];
    for (let request = 0; request < 5; request += 1) first.ask(TOKEN);
    second.ask(TOKEN);
    expect([first.news, second.news].map(({ length }) => length)).toEqual([1, 1]);
    expect(passesIn(first)).toEqual(passesIn(second));
    expect(scene.passes.counters).toMatchObject({ passes: 1, granted: 2, revoked: 0 });
  });
});

describe("a limit of which a pass is out", () => {
  it("is one, whoever charges it, from what it was before to what it is after", () => {
    const scene = passScene([keyRow(TOKEN)]);
    const front = joinFront(scene);
    const owner = scene.gate.find(TOKEN, HERE);
    const own = () => front.gate.find(TOKEN, HERE);
    const nowNs = scene.clock.nowNs();
    if (owner === null) throw new Error("no owner");
    expect(scene.gate.charge(owner, nowNs)).toBe(0);
    front.ask(TOKEN);
    front.deliver();
    const passed = own();
    if (passed === null) throw new Error("no pass");
    expect(front.gate.charge(passed, nowNs)).toBe(0);
    expect(scene.gate.charge(owner, nowNs)).toBe(0);
    const wait = front.gate.charge(passed, nowNs);
    expect(wait).toBeGreaterThan(0);
    expect(scene.gate.charge(owner, nowNs)).toBe(wait);
    expect(scene.gate.counters).toMatchObject({ admitted: 2, limited: 1, accountsTracked: 1 });
    front.holder.leave();
    expect(scene.held.heldCount).toBe(0);
    expect(scene.gate.charge(owner, nowNs)).toBe(wait);
    expect(scene.gate.charge(owner, nowNs + wait)).toBe(0);
  });

  it("gives its cell to nobody before each thread has returned the pass", async () => {
    const scene = passScene([keyRow(TOKEN), keyRow(STRANGER, "b")]);
    const fronts = [joinFront(scene), joinFront(scene)];
    for (const front of fronts) front.ask(TOKEN);
    for (const front of fronts) front.deliver();
    const late = fronts[1]?.gate.find(TOKEN, HERE) ?? null;
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    expect(scene.passes.counters).toMatchObject({ passes: 0, revoked: 1 });
    fronts[0]?.deliver();
    expect(scene.held.heldCount).toBe(1);
    fronts[0]?.ask(STRANGER);
    expect(scene.held.heldCount).toBe(2);
    fronts[1]?.deliver();
    expect(scene.held.heldCount).toBe(1);
    // Found before it was taken back, charged after.
    if (late !== null) expect(fronts[1]?.gate.charge(late, scene.clock.nowNs())).toBe(1);
    expect(late).not.toBeNull();
  });
});

/** A front with passes of so many keys, which are held against the keys in turns of their own. */
function inTurns(count: number) {
  const rows = Array.from({ length: count }, (_, number) => keyRow(nth(number), `a${number}`));
  const scene = passScene(rows);
  const turns: (() => void)[] = [];
  const after = (_: number, act: () => void) => {
    turns.push(act);
    return { cancel() {} };
  };
  const clock = { ...scene.clock, after };
  const passes = createPasses({ ...scene, clock });
  const front = joinFront({ ...scene, passes });
  for (let number = 0; number < count; number += 1) front.ask(nth(number));
  front.deliver();
  return { scene, passes, front, turns };
}

describe("a change of the keys", () => {
  it("takes back what says something else now, and nothing else", async () => {
    const limit = { ratePerSecond: 1, burst: 1 };
    const networks = () => networksOf(["10.0.0.0/8"]);
    const narrow = (expiresUnixMs: number | null, ranges: string, burst: number) => ({
      restriction: {
        expiresUnixMs,
        networks: networksOf([ranges]),
        limit: { ...limit, burst },
      },
    });
    const at = 1_900_000_000_000;
    const before = [
      keyRow(nth(0)),
      keyRow(nth(1)),
      keyRow(nth(2)),
      keyRow(nth(3), "a", narrow(at, "10.0.0.0/8", 2)),
      keyRow(nth(4), "a", narrow(at, "10.0.0.0/8", 2)),
      keyRow(nth(5), "a", narrow(at, "10.0.0.0/8", 2)),
      keyRow(nth(6), "a", narrow(at, "10.0.0.0/8", 2)),
      keyRow(nth(7)),
      keyRow(nth(8)),
    ];
    const scene = passScene(before);
    const front = joinFront(scene);
    for (const { sha256 } of before) {
      const owner = scene.keys.lookup(sha256);
      const token = nth(before.findIndex((row) => row.sha256 === sha256));
      if (owner !== null) front.holder.grant(token, owner);
    }
    front.deliver();
    scene.keys.replace([
      keyRow(nth(0)),
      keyRow(nth(2), "b"),
      keyRow(nth(3), "a", narrow(at, "10.0.0.0/8", 2)),
      keyRow(nth(4), "a", narrow(at + 1, "10.0.0.0/8", 2)),
      keyRow(nth(5), "a", narrow(at, "10.0.0.0/9", 2)),
      keyRow(nth(6), "a", narrow(at, "10.0.0.0/8", 3)),
      keyRow(nth(7), "a", {
        restriction: { expiresUnixMs: at, networks: networks(), limit: null },
      }),
      keyRow(nth(8), "a", { keyId: "f".repeat(32) }),
    ]);
    await Promise.resolve();
    expect(front.news.map((news) => news.kind === "passOver" && news.token)).toEqual(
      [1, 2, 4, 5, 6, 7, 8].map(nth),
    );
    front.deliver();
    expect(front.gate.counters.passes).toBe(2);
    expect(scene.passes.counters).toMatchObject({ passes: 2, revoked: 7 });
    // The account's, and the one limit of a key that stays.
    expect(scene.held.heldCount).toBe(2);
  });

  it.each([{ name: "Q" }, { ratePerSecond: 2 }, { burst: 4 }, { shared: true }])(
    "sends a plan anew with the next request: %o",
    async (change) => {
      const scene = passScene([keyRow(TOKEN)]);
      const front = joinFront(scene);
      front.ask(TOKEN);
      front.deliver();
      const plan = { ...PLAN, ...change };
      scene.keys.put(keyRow(TOKEN, "a", { plan }));
      await Promise.resolve();
      front.deliver();
      expect(front.gate.find(TOKEN, HERE)).toBeNull();
      front.ask(TOKEN);
      front.deliver();
      expect(front.gate.find(TOKEN, HERE)?.plan).toEqual(plan);
    },
  );

  it("is also seen where nothing but a plan was set, and lets stay what is so still", async () => {
    const scene = passScene([keyRow(TOKEN)]);
    const front = joinFront(scene);
    front.ask(TOKEN);
    front.deliver();
    scene.keys.setPlan({ ...PLAN });
    await Promise.resolve();
    expect(front.news).toEqual([]);
    scene.keys.setPlan({ ...PLAN, burst: 9 });
    await Promise.resolve();
    expect(front.news).toMatchObject([{ kind: "passOver", token: TOKEN }]);
  });

  it("gives no pass by what was so before it", () => {
    const scene = passScene([keyRow(TOKEN)]);
    const [first, second] = [joinFront(scene), joinFront(scene)];
    first.ask(TOKEN);
    scene.keys.setPlan({ ...PLAN, burst: 9 });
    // The pass that is out is not held against the keys yet.
    second.ask(TOKEN);
    expect(second.news).toEqual([]);
  });

  it("is held against a share of the passes a turn, all after the last change", async () => {
    const count = 3 * PASSES_A_TURN;
    const { scene, passes, front, turns } = inTurns(count);
    scene.keys.remove(tokenSha256(nth(count - 1)));
    await Promise.resolve();
    turns.pop()?.();
    expect(front.news).toHaveLength(0);
    // What changes meanwhile does not begin all anew: the last one has its turn.
    scene.keys.remove(tokenSha256(nth(0)));
    await Promise.resolve();
    expect(front.news).toHaveLength(0);
    turns.pop()?.();
    expect(front.news).toMatchObject([{ token: nth(count - 1) }]);
    turns.pop()?.();
    expect(front.news).toMatchObject([{ token: nth(count - 1) }, { token: nth(0) }]);
    for (let left = count / PASSES_A_TURN; turns.length > 0; left -= 1) {
      expect(left).toBeGreaterThan(0);
      turns.pop()?.();
    }
    expect(passes.counters.revoked).toBe(2);
  });

  it("takes back fewer a turn, where a plan of many keys is another", async () => {
    const count = 3 * PASSES_BACK_A_TURN + 1;
    const { scene, front, turns } = inTurns(count);
    scene.keys.setPlan({ ...PLAN, burst: 9 });
    await Promise.resolve();
    expect(front.news).toHaveLength(PASSES_BACK_A_TURN);
    turns.pop()?.();
    expect(front.news).toHaveLength(2 * PASSES_BACK_A_TURN);
    turns.pop()?.();
    turns.pop()?.();
    expect(front.news.map((news) => news.kind === "passOver" && news.token)).toEqual(
      Array.from({ length: count }, (_, number) => nth(number)),
    );
  });

  it("wakes nobody where no pass is out, or after the end", async () => {
    const scene = passScene([keyRow(TOKEN), keyRow(STRANGER)]);
    scene.keys.remove(tokenSha256(STRANGER));
    await Promise.resolve();
    const front = joinFront(scene);
    front.ask(TOKEN);
    scene.passes.stop();
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    expect(passesIn(front)).toHaveLength(1);
    expect(scene.clock.pending).toBe(0);
  });
});

describe("a thread that is gone", () => {
  it("has no pass and gets none, and the next one asks for its own", () => {
    const scene = passScene([keyRow(TOKEN), keyRow(STRANGER, "b")]);
    const [first, second] = [joinFront(scene), joinFront(scene)];
    first.ask(TOKEN);
    first.ask(STRANGER);
    second.ask(TOKEN);
    first.holder.leave();
    first.ask(TOKEN);
    expect(scene.passes.counters).toMatchObject({ passes: 1, granted: 3 });
    expect(scene.held.heldCount).toBe(1);
    const next = joinFront(scene);
    next.ask(TOKEN);
    expect(passesIn(next)).toHaveLength(1);
  });

  it("is not waited for", async () => {
    const scene = passScene([keyRow(TOKEN)]);
    const [first, second] = [joinFront(scene), joinFront(scene)];
    for (const front of [first, second]) front.ask(TOKEN);
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    first.deliver();
    second.holder.leave();
    expect(scene.held.heldCount).toBe(0);
    // What was on its way says nothing any more.
    second.deliver();
    expect(scene.passes.counters.passes).toBe(0);
  });
});

describe("when there are as many as there may be", () => {
  const many = PASSES_MAX + 40;
  const rows = Array.from({ length: many }, (_, number) => {
    return keyRow(nth(number), `a${number}`, { limit: { ...PLAN, burst: 1 } });
  });

  function full() {
    const scene = passScene(rows);
    const front = joinFront(scene);
    for (let number = 0; number < PASSES_MAX; number += 1) front.ask(nth(number));
    front.deliver();
    return { scene, front };
  }

  it("one that was not used makes room for a newcomer's next request", () => {
    const { scene, front } = full();
    scene.marks.fill(1);
    scene.marks[5] = 0;
    front.ask(nth(PASSES_MAX));
    expect(front.news).toMatchObject([{ kind: "passOver", token: nth(5) }]);
    // One on its way back is enough.
    scene.clock.advance(PASS_PLACE_MS);
    front.ask(nth(PASSES_MAX));
    expect(scene.passes.counters).toMatchObject({ evicted: 1, declined: 2 });
    front.deliver();
    front.ask(nth(PASSES_MAX));
    front.deliver();
    expect(front.gate.find(nth(PASSES_MAX), HERE)).not.toBeNull();
    expect(front.gate.find(nth(5), HERE)).toBeNull();
    expect(scene.held.heldCount).toBe(2 * PASSES_MAX);
    expect(scene.passes.counters.passes).toBe(PASSES_MAX);
  });

  it("those in use stay, and a newcomer looks at few of them", () => {
    const { scene, front } = full();
    scene.marks.fill(1);
    for (let round = 0; round < 20; round += 1) {
      front.ask(nth(PASSES_MAX + round));
      scene.clock.advance(PASS_PLACE_MS);
    }
    expect(front.news).toEqual([]);
    expect(scene.passes.counters).toMatchObject({ evicted: 0, declined: 20 });
    expect(scene.marks.filter((mark) => mark === 0)).toHaveLength(20 * 8);
  });

  it("newcomers by the thousand change few of them, and none that was given just now", () => {
    const { scene, front } = full();
    const { granted } = scene.passes.counters;
    scene.marks.fill(0);
    for (let request = 0; request < 4_000; request += 1) {
      front.ask(nth(PASSES_MAX + (request % 40)));
      front.deliver();
      scene.clock.advance(request % 10 === 0 ? 1 : 0);
    }
    const { counters } = scene.passes;
    expect(counters.evicted).toBe(400 / PASS_PLACE_MS);
    expect(counters.granted - granted).toBe(counters.evicted);
    for (let number = 0; number < 40; number += 1)
      expect(front.gate.find(nth(PASSES_MAX + number), HERE)).not.toBeNull();
  });

  it("a thread that uses a pass marks it", () => {
    const { scene, front } = full();
    scene.marks.fill(0);
    front.gate.find(nth(0), HERE);
    front.ask(nth(PASSES_MAX));
    expect(front.news).toMatchObject([{ token: nth(1) }]);
  });
});
