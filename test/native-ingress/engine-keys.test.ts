/**
 * The keys and limits in the native engine: they follow the key table of the main thread, and admit
 * what its own access control would.
 */

import { afterEach, describe, expect, it } from "vitest";
import type { KeyRow } from "../../src/accounts/keys/key.ts";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { createKeyTable } from "../../src/accounts/keys/table.ts";
import { systemClock } from "../../src/core/clock.ts";
import {
  createAccessControl,
  type KeyPolicy,
  type RatePlan,
} from "../../src/limits/access-control.ts";
import { EngineKeys } from "../../src/native-ingress/engine-keys.ts";
import { networksOf } from "../../src/runtime/networks.ts";
import { accountNumber } from "../../src/send/native/account-number.ts";
import { native } from "../native/addon.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { HERE } from "../support/principals.ts";
import { createRng } from "../support/rng.ts";

const PLAN: RatePlan = { name: "P", ratePerSecond: 1, burst: 3, shared: false };
/** Later than any monotonic clock, so that no state is removed as unused. */
const NOW = 9e15;

const opened: EngineKeys[] = [];
afterEach(() => {
  for (const keys of opened.splice(0)) keys.close();
});

function engineKeys(): EngineKeys {
  if (native === null) throw new Error("no addon");
  const keys = new EngineKeys(native);
  opened.push(keys);
  return keys;
}

/** With the batches of keys that the engine received. */
function recordedKeys() {
  if (native === null) throw new Error("no addon");
  const engine = native;
  const batches: Buffer[] = [];
  const keys = new EngineKeys({
    ...engine,
    keysPut(table, isNext, batch) {
      batches.push(Buffer.from(batch));
      return engine.keysPut(table, isNext, batch);
    },
  });
  opened.push(keys);
  return { keys, batches };
}

const tokenOf = (number: number): string => `token number ${number}`.padEnd(20, "x");

function row(number: number, over: Partial<KeyRow> = {}): KeyRow {
  const sha256 = tokenSha256(tokenOf(number));
  const keyId = sha256.toString("hex", 0, 16);
  const rest = { plan: PLAN, label: null, policy: null, isDerived: false };
  return { sha256, keyId, account: `a${number}`, ...rest, ...over };
}

const policy = (over: Partial<KeyPolicy>): KeyPolicy => ({
  expiresUnixMs: null,
  networks: null,
  limit: null,
  ...over,
});

/** How many requests of the key are admitted now. */
function passed(keys: EngineKeys, number: number, nowNs = NOW): number {
  let count = 0;
  while (count < 100 && keys.charge(tokenSha256(tokenOf(number)), nowNs) === 0) count += 1;
  return count;
}

describe.skipIf(native === null)("the keys of the engine", () => {
  it("are all those of the table, those that were there before included", () => {
    const table = createKeyTable([row(1), row(2)]);
    const keys = engineKeys();
    table.follow(keys);
    table.put(row(3));
    expect(keys.keyCount).toBe(3);
    expect([1, 2, 3].map((number) => passed(keys, number))).toEqual([3, 3, 3]);
    expect(keys.size).toBe(3);
  });

  it("change with the table: a key, a plan, and all keys", () => {
    const table = createKeyTable([row(1), row(2)]);
    const keys = engineKeys();
    table.follow(keys);
    table.remove(row(1).sha256);
    expect([passed(keys, 1), keys.keyCount]).toEqual([100, 1]);
    table.setPlan({ ...PLAN, burst: 5 });
    table.setPlan({ ...PLAN, name: "of no key" });
    expect(passed(keys, 2)).toBe(5);
    table.replace([
      row(2, { plan: { ...PLAN, burst: 7 } }),
      row(4, { plan: { ...PLAN, burst: 7 } }),
    ]);
    // Its limit is as it was left.
    expect([passed(keys, 2), passed(keys, 4), keys.keyCount]).toEqual([2, 7, 2]);
  });

  it("are those of the last rebuild that was finished", () => {
    const table = createKeyTable([row(1)]);
    const keys = engineKeys();
    table.follow(keys);
    const given = table.startRebuild();
    given.put(row(2));
    const rebuild = table.startRebuild();
    given.put(row(3));
    for (let number = 10; number < 3_000; number += 1) {
      const { sha256, keyId, ...rest } = row(number);
      const bytes = Buffer.concat([Buffer.from(keyId, "hex"), sha256]);
      rebuild.putLent({ ...rest, bytes, idAt: 0, sha256At: 16 });
    }
    expect(keys.keyCount).toBe(1);
    rebuild.finish();
    expect(keys.keyCount).toBe(2_990);
    expect([10, 2_999].map((number) => passed(keys, number))).toEqual([3, 3]);
    expect([1, 2, 3].map((number) => passed(keys, number))).toEqual([100, 100, 100]);
  });

  it("take every policy, names up to the longest and times that are none", () => {
    const keys = engineKeys();
    const long = Array.from(
      { length: 2_000 },
      (_, index) => `10.${index >> 8}.${index & 255}.0/24`,
    );
    const rows = [
      row(1, { policy: policy({ networks: networksOf(long) }) }),
      row(2, { policy: policy({ expiresUnixMs: 9e15 }) }),
      row(3, {
        account: "ß".repeat(64),
        policy: policy({ limit: { ratePerSecond: 1, burst: 2 } }),
      }),
      // The keys file and the database have none that is as long.
      row(4, { account: "😀".repeat(20_000) }),
    ];
    for (const each of rows) keys.put(each);
    expect(keys.keyCount).toBe(3);
    expect([passed(keys, 1), passed(keys, 2), passed(keys, 3)]).toEqual([3, 3, 2]);
    expect(keys.limitedBy).toBe("key");
  });

  it("have the networks of their policy and no wider ones, however long the list is", () => {
    const text = Array.from(
      { length: 1_400 },
      (_, index) => `10.${index >> 8}.${index & 255}.0/24`,
    );
    const { keys, batches } = recordedKeys();
    keys.put(row(1, { policy: policy({ networks: networksOf(text) }) }));
    const bytes = batches[0] ?? Buffer.alloc(0);
    const listAt = bytes.indexOf("10.0.0.0/24");
    const list = bytes.toString("utf8", listAt);
    expect(bytes.readUInt16LE(listAt - 2)).toBe(list.length);
    expect(list.split(", ").filter((range) => !text.includes(range))).toEqual([]);
    expect(list.length).toBeGreaterThan(16_000);
  });

  it("stay as they are while a rebuild that is not finished is interleaved with changes", () => {
    const table = createKeyTable([row(1)]);
    const keys = engineKeys();
    table.follow(keys);
    const rebuild = table.startRebuild();
    rebuild.put(row(2));
    table.put(row(3));
    expect([keys.keyCount, passed(keys, 2)]).toEqual([2, 100]);
    rebuild.finish();
    expect([keys.keyCount, passed(keys, 2), passed(keys, 3)]).toEqual([1, 3, 100]);
  });

  it("know the name of each plan by its number", () => {
    const keys = engineKeys();
    for (const name of ["A", "B", "A"]) keys.put(row(1, { plan: { ...PLAN, name } }));
    expect([0, 1, 2].map((number) => keys.planName(number))).toEqual(["A", "B", ""]);
  });

  it("come with the number by which landed shares know their account", () => {
    const { keys, batches } = recordedKeys();
    for (const account of ["acme", "größe", "other"]) keys.put(row(1, { account }));
    const numbers = batches.map((batch) => {
      const nameAt = 32 + 16 + 4 + 2;
      return batch.readDoubleLE(nameAt + batch.readUInt16LE(nameAt - 2));
    });
    expect(numbers).toEqual(["acme", "größe", "other"].map(accountNumber));
  });

  it("admit what an access control of one thread admits", () => {
    const rng = createRng(5);
    const rows = Array.from({ length: 12 }, (_, index) => {
      const plan = {
        name: `P${index % 3}`,
        ratePerSecond: 1e7,
        burst: 1 + (index % 3),
        shared: false,
      };
      const limit = { ratePerSecond: 1e9 / 150, burst: 2 };
      return row(index, {
        account: `a${index >> 2}`,
        plan,
        policy: index % 2 === 0 ? null : policy({ limit }),
      });
    });
    const table = createKeyTable(rows);
    const keys = engineKeys();
    table.follow(keys);
    const deps = {
      clock: createFakeClock(),
      keys: table,
      looksMistyped: () => false,
      globalLimits: null,
    };
    const [apart, ours] = [
      createAccessControl(deps),
      createAccessControl({ ...deps, sharedLimits: keys }),
    ];
    for (let nowNs = NOW; nowNs < NOW + 40_000; nowNs += rng.below(40)) {
      const token = tokenOf(rng.below(rows.length));
      const [one, other] = [apart, ours].map((access) => {
        const principal = access.authenticate(token, HERE);
        if (principal === null) throw new Error("the key is known");
        return [access.charge(principal, nowNs), access.limitedBy];
      });
      expect(other).toEqual(one);
    }
    expect(ours.counters).toMatchObject({ ...apart.counters, accountsTracked: keys.size });
    expect(ours.counters.limited).toBeGreaterThan(100);
  });

  it("count a shared limit, which is watched from its first charge on", () => {
    const keys = engineKeys();
    keys.put(row(1, { plan: { ...PLAN, name: "S", shared: true, burst: 4 } }));
    expect(passed(keys, 1)).toBe(4);
    // Of this edge alone until the number of edges is known.
    expect(keys.takeCharged(9)).toEqual([]);
    keys.setEdgeCount(2);
    const nowNs = systemClock.nowNs();
    expect(passed(keys, 1, nowNs)).toBe(2);
    const [taken, ...rest] = keys.takeCharged(9);
    expect([taken?.account, rest]).toEqual(["a1", []]);
    const slot = taken?.limitSlot ?? -1;
    const { fullNs, ...counted } = keys.read(slot);
    expect(counted).toEqual({ count: 2, intervalNs: 1e9 });
    expect(fullNs).toBe(nowNs + 4e9);
    expect([keys.replace(slot, fullNs + 1, 0), keys.replace(slot, fullNs, 0)]).toEqual([
      false,
      true,
    ]);
    keys.release(slot, 2);
    expect(keys.takeCharged(9)).toEqual([]);
    passed(keys, 1, nowNs);
    expect(keys.takeCharged(9).map(({ account }) => account)).toEqual(["a1"]);
  });
});
