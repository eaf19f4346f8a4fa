import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { networksOf } from "../../src/accounts/keys/policy.ts";
import {
  CACHED_KEYS_MAX,
  KEY_REVIEWS_PER_SLICE,
  KEY_REVOCATIONS_PER_SLICE,
  KEY_SLOT_SCAN_MS,
} from "../../src/limits/bounds.ts";
import type { KeyGrant } from "../../src/limits/key-cache-entry.ts";
import { createKeyCacheSync } from "../../src/limits/key-cache-sync.ts";
import { NO_LIMIT_SLOT } from "../../src/limits/thread-limit-states.ts";
import { joinThread, keyCacheFixture, keyRow, PLAN } from "../support/key-cache.ts";
import { HERE } from "../support/principals.ts";

const TOKEN = "token-of-account-a";
const OTHER = "other-of-account-a";
const STRANGER = "token-of-account-b";
const nth = (number: number): string => `token number ${number}`.padEnd(20, "x");

/** The grants posted to a thread, without consuming them. */
function grantsIn({ updates }: ReturnType<typeof joinThread>): readonly KeyGrant[] {
  return updates.flatMap((message) => (message.kind === "grant" ? [message.grant] : []));
}

describe("a pass", () => {
  it("holds the account of the key, its restrictions, and the slots of its limits", () => {
    const networks = networksOf(["10.0.0.0/8"]);
    const limit = { ratePerSecond: 1, burst: 2 };
    const policy = { expiresUnixMs: 1_900_000_000_000, networks, limit };
    const scene = keyCacheFixture([keyRow(TOKEN), keyRow(OTHER, "a", { policy })]);
    const thread = joinThread(scene);
    const narrowed = scene.keys.lookup(tokenSha256(OTHER));
    thread.ask(TOKEN);
    if (narrowed !== null) thread.holder.grant(OTHER, narrowed);
    const [plain, other] = grantsIn(thread);
    expect(plain).toEqual({
      token: TOKEN,
      keyId: keyRow(TOKEN).keyId,
      account: "a",
      plan: PLAN,
      ...{ expiresUnixMs: null, ranges: null, limit: null },
      isGlobal: false,
      accountLimitSlot: plain?.accountLimitSlot,
      keyLimitSlot: NO_LIMIT_SLOT,
      keySlot: plain?.keySlot,
    });
    expect(other).toMatchObject({
      expiresUnixMs: 1_900_000_000_000,
      ranges: ["10.0.0.0/8"],
      limit,
    });
    expect(other?.accountLimitSlot).toBe(plain?.accountLimitSlot);
    expect(other?.keySlot).not.toBe(plain?.keySlot);
    expect([NO_LIMIT_SLOT, plain?.accountLimitSlot]).not.toContain(other?.keyLimitSlot);
    expect(scene.delegated.delegatedCount).toBe(2);
  });

  it("is granted once to each thread that requests it", () => {
    const scene = keyCacheFixture([keyRow(TOKEN)]);
    const [first, second] = [joinThread(scene), joinThread(scene)];
    for (let request = 0; request < 5; request += 1) first.ask(TOKEN);
    second.ask(TOKEN);
    expect([first.updates, second.updates].map(({ length }) => length)).toEqual([1, 1]);
    expect(grantsIn(first)).toEqual(grantsIn(second));
    expect(scene.keyCache.counters).toMatchObject({ cachedKeys: 1, granted: 2, revoked: 0 });
  });
});

describe("a limit of which a pass is out", () => {
  it("is one state for every thread, before, during and after the grant", () => {
    const scene = keyCacheFixture([keyRow(TOKEN)]);
    const thread = joinThread(scene);
    const principal = scene.access.authenticate(TOKEN, HERE);
    const own = () => thread.access.authenticate(TOKEN, HERE);
    const nowNs = scene.clock.nowNs();
    if (principal === null) throw new Error("no owner");
    expect(scene.access.charge(principal, nowNs)).toBe(0);
    thread.ask(TOKEN);
    thread.deliver();
    const passed = own();
    if (passed === null) throw new Error("no pass");
    expect(thread.access.charge(passed, nowNs)).toBe(0);
    expect(scene.access.charge(principal, nowNs)).toBe(0);
    const wait = thread.access.charge(passed, nowNs);
    expect(wait).toBeGreaterThan(0);
    expect(scene.access.charge(principal, nowNs)).toBe(wait);
    expect(scene.access.counters).toMatchObject({ allowed: 2, limited: 1, accountsTracked: 1 });
    thread.holder.leave();
    expect(scene.delegated.delegatedCount).toBe(0);
    expect(scene.access.charge(principal, nowNs)).toBe(wait);
    expect(scene.access.charge(principal, nowNs + wait)).toBe(0);
  });

  it("releases its slot only after each thread has returned the key", async () => {
    const scene = keyCacheFixture([keyRow(TOKEN), keyRow(STRANGER, "b")]);
    const threads = [joinThread(scene), joinThread(scene)];
    for (const thread of threads) thread.ask(TOKEN);
    for (const thread of threads) thread.deliver();
    const late = threads[1]?.access.authenticate(TOKEN, HERE) ?? null;
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    expect(scene.keyCache.counters).toMatchObject({ cachedKeys: 0, revoked: 1 });
    threads[0]?.deliver();
    expect(scene.delegated.delegatedCount).toBe(1);
    threads[0]?.ask(STRANGER);
    expect(scene.delegated.delegatedCount).toBe(2);
    threads[1]?.deliver();
    expect(scene.delegated.delegatedCount).toBe(1);
    // Found before it was revoked, charged after.
    if (late !== null) expect(threads[1]?.access.charge(late, scene.clock.nowNs())).toBe(1);
    expect(late).not.toBeNull();
  });
});

/** An ingress thread with `count` cached keys, which are reviewed in separate turns. */
function inTurns(count: number) {
  const rows = Array.from({ length: count }, (_, number) => keyRow(nth(number), `a${number}`));
  const scene = keyCacheFixture(rows);
  const turns: (() => void)[] = [];
  const after = (_: number, act: () => void) => {
    turns.push(act);
    return { cancel() {} };
  };
  const clock = { ...scene.clock, after };
  const keyCache = createKeyCacheSync({ ...scene, clock });
  const thread = joinThread({ ...scene, keyCache });
  for (let number = 0; number < count; number += 1) thread.ask(nth(number));
  thread.deliver();
  return { scene, keyCache, thread, turns };
}

describe("a change of the keys", () => {
  it("revokes the grants that have changed, and no others", async () => {
    const limit = { ratePerSecond: 1, burst: 1 };
    const networks = () => networksOf(["10.0.0.0/8"]);
    const narrow = (expiresUnixMs: number | null, ranges: string, burst: number) => ({
      policy: {
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
    const scene = keyCacheFixture(before);
    const thread = joinThread(scene);
    for (const { sha256 } of before) {
      const principal = scene.keys.lookup(sha256);
      const token = nth(before.findIndex((row) => row.sha256 === sha256));
      if (principal !== null) thread.holder.grant(token, principal);
    }
    thread.deliver();
    scene.keys.replace([
      keyRow(nth(0)),
      keyRow(nth(2), "b"),
      keyRow(nth(3), "a", narrow(at, "10.0.0.0/8", 2)),
      keyRow(nth(4), "a", narrow(at + 1, "10.0.0.0/8", 2)),
      keyRow(nth(5), "a", narrow(at, "10.0.0.0/9", 2)),
      keyRow(nth(6), "a", narrow(at, "10.0.0.0/8", 3)),
      keyRow(nth(7), "a", {
        policy: { expiresUnixMs: at, networks: networks(), limit: null },
      }),
      keyRow(nth(8), "a", { keyId: "f".repeat(32) }),
    ]);
    await Promise.resolve();
    expect(thread.updates.map((news) => news.kind === "revoke" && news.token)).toEqual(
      [1, 2, 4, 5, 6, 7, 8].map(nth),
    );
    thread.deliver();
    expect(thread.access.counters.cachedKeys).toBe(2);
    expect(scene.keyCache.counters).toMatchObject({ cachedKeys: 2, revoked: 7 });
    // The account's limit, and the own limit of a key that stays.
    expect(scene.delegated.delegatedCount).toBe(2);
  });

  it.each([{ name: "Q" }, { ratePerSecond: 2 }, { burst: 4 }, { shared: true }])(
    "sends a plan anew with the next request: %o",
    async (change) => {
      const scene = keyCacheFixture([keyRow(TOKEN)]);
      const thread = joinThread(scene);
      thread.ask(TOKEN);
      thread.deliver();
      const plan = { ...PLAN, ...change };
      scene.keys.put(keyRow(TOKEN, "a", { plan }));
      await Promise.resolve();
      thread.deliver();
      expect(thread.access.authenticate(TOKEN, HERE)).toBeNull();
      thread.ask(TOKEN);
      thread.deliver();
      expect(thread.access.authenticate(TOKEN, HERE)?.plan).toEqual(plan);
    },
  );

  it("is also seen where nothing but a plan was set, and lets stay what is so still", async () => {
    const scene = keyCacheFixture([keyRow(TOKEN)]);
    const thread = joinThread(scene);
    thread.ask(TOKEN);
    thread.deliver();
    scene.keys.setPlan({ ...PLAN });
    await Promise.resolve();
    expect(thread.updates).toEqual([]);
    scene.keys.setPlan({ ...PLAN, burst: 9 });
    await Promise.resolve();
    expect(thread.updates).toMatchObject([{ kind: "revoke", token: TOKEN }]);
  });

  it("gives no pass by what was so before it", () => {
    const scene = keyCacheFixture([keyRow(TOKEN)]);
    const [first, second] = [joinThread(scene), joinThread(scene)];
    first.ask(TOKEN);
    scene.keys.setPlan({ ...PLAN, burst: 9 });
    // The cached key has not been reviewed yet.
    second.ask(TOKEN);
    expect(second.updates).toEqual([]);
  });

  it("is held against a share of the passes a turn, all after the last change", async () => {
    const count = 3 * KEY_REVIEWS_PER_SLICE;
    const { scene, keyCache, thread, turns } = inTurns(count);
    scene.keys.remove(tokenSha256(nth(count - 1)));
    await Promise.resolve();
    turns.pop()?.();
    expect(thread.updates).toHaveLength(0);
    // A change in between does not restart the review: the last key is reviewed in its turn.
    scene.keys.remove(tokenSha256(nth(0)));
    await Promise.resolve();
    expect(thread.updates).toHaveLength(0);
    turns.pop()?.();
    expect(thread.updates).toMatchObject([{ token: nth(count - 1) }]);
    turns.pop()?.();
    expect(thread.updates).toMatchObject([{ token: nth(count - 1) }, { token: nth(0) }]);
    for (let left = count / KEY_REVIEWS_PER_SLICE; turns.length > 0; left -= 1) {
      expect(left).toBeGreaterThan(0);
      turns.pop()?.();
    }
    expect(keyCache.counters.revoked).toBe(2);
  });

  it("revokes a bounded number in a turn after a plan of many keys changed", async () => {
    const count = 3 * KEY_REVOCATIONS_PER_SLICE + 1;
    const { scene, thread, turns } = inTurns(count);
    scene.keys.setPlan({ ...PLAN, burst: 9 });
    await Promise.resolve();
    expect(thread.updates).toHaveLength(KEY_REVOCATIONS_PER_SLICE);
    turns.pop()?.();
    expect(thread.updates).toHaveLength(2 * KEY_REVOCATIONS_PER_SLICE);
    turns.pop()?.();
    turns.pop()?.();
    expect(thread.updates.map((news) => news.kind === "revoke" && news.token)).toEqual(
      Array.from({ length: count }, (_, number) => nth(number)),
    );
  });

  it("wakes no thread without grants, or after the end", async () => {
    const scene = keyCacheFixture([keyRow(TOKEN), keyRow(STRANGER)]);
    scene.keys.remove(tokenSha256(STRANGER));
    await Promise.resolve();
    const thread = joinThread(scene);
    thread.ask(TOKEN);
    scene.keyCache.stop();
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    expect(grantsIn(thread)).toHaveLength(1);
    expect(scene.clock.pending).toBe(0);
  });
});

describe("a thread that is gone", () => {
  it("has no grant and gets none, and the next thread requests its own", () => {
    const scene = keyCacheFixture([keyRow(TOKEN), keyRow(STRANGER, "b")]);
    const [first, second] = [joinThread(scene), joinThread(scene)];
    first.ask(TOKEN);
    first.ask(STRANGER);
    second.ask(TOKEN);
    first.holder.leave();
    first.ask(TOKEN);
    expect(scene.keyCache.counters).toMatchObject({ cachedKeys: 1, granted: 3 });
    expect(scene.delegated.delegatedCount).toBe(1);
    const next = joinThread(scene);
    next.ask(TOKEN);
    expect(grantsIn(next)).toHaveLength(1);
  });

  it("is not waited for", async () => {
    const scene = keyCacheFixture([keyRow(TOKEN)]);
    const [first, second] = [joinThread(scene), joinThread(scene)];
    for (const thread of [first, second]) thread.ask(TOKEN);
    scene.keys.remove(tokenSha256(TOKEN));
    await Promise.resolve();
    first.deliver();
    second.holder.leave();
    expect(scene.delegated.delegatedCount).toBe(0);
    // Messages in flight have no effect any more.
    second.deliver();
    expect(scene.keyCache.counters.cachedKeys).toBe(0);
  });
});

describe("when there are as many as there may be", () => {
  const many = CACHED_KEYS_MAX + 40;
  const rows = Array.from({ length: many }, (_, number) => {
    return keyRow(nth(number), `a${number}`, { limit: { ...PLAN, burst: 1 } });
  });

  function full() {
    const scene = keyCacheFixture(rows);
    const thread = joinThread(scene);
    for (let number = 0; number < CACHED_KEYS_MAX; number += 1) thread.ask(nth(number));
    thread.deliver();
    return { scene, thread };
  }

  it("one that was not used makes room for a newcomer's next request", () => {
    const { scene, thread } = full();
    scene.usedMarks.fill(1);
    scene.usedMarks[5] = 0;
    thread.ask(nth(CACHED_KEYS_MAX));
    expect(thread.updates).toMatchObject([{ kind: "revoke", token: nth(5) }]);
    // One pending return is enough.
    scene.clock.advance(KEY_SLOT_SCAN_MS);
    thread.ask(nth(CACHED_KEYS_MAX));
    expect(scene.keyCache.counters).toMatchObject({ evicted: 1, declined: 2 });
    thread.deliver();
    thread.ask(nth(CACHED_KEYS_MAX));
    thread.deliver();
    expect(thread.access.authenticate(nth(CACHED_KEYS_MAX), HERE)).not.toBeNull();
    expect(thread.access.authenticate(nth(5), HERE)).toBeNull();
    expect(scene.delegated.delegatedCount).toBe(2 * CACHED_KEYS_MAX);
    expect(scene.keyCache.counters.cachedKeys).toBe(CACHED_KEYS_MAX);
  });

  it("those in use stay, and a newcomer looks at few of them", () => {
    const { scene, thread } = full();
    scene.usedMarks.fill(1);
    for (let round = 0; round < 20; round += 1) {
      thread.ask(nth(CACHED_KEYS_MAX + round));
      scene.clock.advance(KEY_SLOT_SCAN_MS);
    }
    expect(thread.updates).toEqual([]);
    expect(scene.keyCache.counters).toMatchObject({ evicted: 0, declined: 20 });
    expect(scene.usedMarks.filter((mark) => mark === 0)).toHaveLength(20 * 8);
  });

  it("newcomers by the thousand change few of them, and none that was given just now", () => {
    const { scene, thread } = full();
    const { granted } = scene.keyCache.counters;
    scene.usedMarks.fill(0);
    for (let request = 0; request < 4_000; request += 1) {
      thread.ask(nth(CACHED_KEYS_MAX + (request % 40)));
      thread.deliver();
      scene.clock.advance(request % 10 === 0 ? 1 : 0);
    }
    const { counters } = scene.keyCache;
    expect(counters.evicted).toBe(400 / KEY_SLOT_SCAN_MS);
    expect(counters.granted - granted).toBe(counters.evicted);
    for (let number = 0; number < 40; number += 1)
      expect(thread.access.authenticate(nth(CACHED_KEYS_MAX + number), HERE)).not.toBeNull();
  });

  it("a thread that uses a pass marks it", () => {
    const { scene, thread } = full();
    scene.usedMarks.fill(0);
    thread.access.authenticate(nth(0), HERE);
    thread.ask(nth(CACHED_KEYS_MAX));
    expect(thread.updates).toMatchObject([{ token: nth(1) }]);
  });
});
