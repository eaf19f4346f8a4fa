import { describe, expect, it } from "vitest";
import type { KeyRow } from "../../../src/accounts/keys/key.ts";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import { createKeyTable } from "../../../src/accounts/keys/table.ts";
import { fc } from "../../support/properties.ts";
import { createRng } from "../../support/rng.ts";

const plan = { name: "P", ratePerSecond: 1, burst: 1, shared: false };
const row = (token: string, account = token): KeyRow => ({
  sha256: tokenSha256(token),
  keyId: tokenSha256(token).toString("hex", 0, 16),
  account,
  plan,
  label: null,
  policy: null,
});

describe("the key table", () => {
  it("finds a key by the digest and nothing else", () => {
    const table = createKeyTable([row("a"), row("b")]);
    expect(table.lookup(tokenSha256("a"))?.account).toBe("a");
    expect(table.lookup(tokenSha256("c"))).toBeNull();
    expect(table.counters.keys).toBe(2);
  });

  it("compares the whole digest", () => {
    const near = row("a");
    const twin = Buffer.from(near.sha256);
    twin.writeUInt8(twin.readUInt8(31) ^ 1, 31);
    const table = createKeyTable([near, { ...near, sha256: twin, account: "twin" }]);
    expect(table.lookup(near.sha256)?.account).toBe("a");
    expect(table.lookup(twin)?.account).toBe("twin");
    const third = Buffer.from(twin);
    third.writeUInt8(third.readUInt8(20) ^ 1, 20);
    expect(table.lookup(third)).toBeNull();
  });

  it("is replaced as a whole, and keeps the old keys when the new ones cannot be read", () => {
    const table = createKeyTable([row("a")]);
    table.replace([row("b")]);
    expect(table.lookup(tokenSha256("a"))).toBeNull();
    expect(table.lookup(tokenSha256("b"))?.account).toBe("b");
    expect(() =>
      table.replace(
        (function* () {
          yield row("c");
          throw new Error("broken");
        })(),
      ),
    ).toThrow("broken");
    expect(table.lookup(tokenSha256("b"))?.account).toBe("b");
    expect(table.counters).toMatchObject({ keys: 1, replacements: 1 });
  });

  it("tells the key's id, plan and restriction with its owner", () => {
    const limit = { ratePerSecond: 1, burst: 2 };
    const policy = { expiresUnixMs: 5, networks: null, limit };
    const table = createKeyTable([{ ...row("a"), policy }, row("b")]);
    expect(table.lookup(tokenSha256("a"))).toEqual({
      keyId: row("a").keyId,
      account: "a",
      plan,
      policy,
    });
    expect(table.lookup(tokenSha256("b"))?.policy).toBeNull();
  });

  it("forgets a restriction with its key, and gives it to no other", () => {
    const narrowed = (token: string, burst: number): KeyRow => ({
      ...row(token),
      policy: { expiresUnixMs: null, networks: null, limit: { ratePerSecond: 1, burst } },
    });
    const table = createKeyTable([narrowed("a", 1), row("b"), narrowed("c", 3)]);
    const burstOf = (token: string) => {
      return table.lookup(tokenSha256(token))?.policy?.limit?.burst ?? null;
    };
    table.remove(tokenSha256("a"));
    table.put(narrowed("d", 4));
    table.put(narrowed("c", 5));
    table.put(row("d"));
    table.put(narrowed("e", 6));
    expect(["b", "c", "d", "e"].map(burstOf)).toEqual([null, 5, null, 6]);
  });

  it("takes a changed key in the place of the old one", () => {
    const table = createKeyTable([row("a")]);
    const faster = { name: "Q", ratePerSecond: 9, burst: 9, shared: false };
    expect(table.put({ ...row("a", "other"), plan: faster })).toBe(true);
    expect(table.lookup(tokenSha256("a"))).toMatchObject({ account: "other", plan: faster });
    expect(table.counters).toMatchObject({ keys: 1, puts: 1 });
    expect(table.remove(tokenSha256("a"))).toBe(true);
    expect(table.remove(tokenSha256("a"))).toBe(false);
    expect(table.lookup(tokenSha256("a"))).toBeNull();
    expect(table.counters).toMatchObject({ keys: 0, removals: 1 });
  });

  it("answers as a plain map does, whatever is put and removed", () => {
    // Digests with few distinct prefixes collide constantly, also across the end of a part.
    const digest = fc
      .tuple(
        fc.constantFrom(0, 1, 14, 15, 0xffff_ffff),
        fc.integer({ min: 0, max: 1 }),
        fc.integer({ min: 0, max: 12 }),
      )
      .map(([start, part, rest]) => {
        const bytes = Buffer.alloc(32, rest);
        bytes.writeUInt32LE(start, 0);
        bytes.writeUInt32LE(part, 4);
        return bytes;
      });
    const act = fc.tuple(fc.boolean(), digest, fc.integer({ min: 0, max: 9 }));
    fc.assert(
      fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
        const table = createKeyTable();
        const model = new Map<string, string>();
        for (const [puts, sha256, account] of acts) {
          const name = sha256.toString("hex");
          if (puts) {
            table.put({ ...row("x", String(account)), sha256 });
            model.set(name, String(account));
          } else expect(table.remove(sha256)).toBe(model.delete(name));
        }
        expect(new Set([...table.rows()].map((it) => it.sha256.toString("hex")))).toEqual(
          new Set(model.keys()),
        );
        for (const [, sha256] of acts) {
          const expected = model.get(sha256.toString("hex"));
          expect(table.lookup(sha256)?.account).toBe(expected);
        }
        expect(table.counters.keys).toBe(model.size);
      }),
    );
  });

  it("grows, and forgets names of keys that are gone", () => {
    const limit = { ratePerSecond: 1, burst: 2 };
    const policy = { expiresUnixMs: null, networks: null, limit };
    const table = createKeyTable([{ ...row("kept"), policy }]);
    for (let i = 0; i < 5_000; i += 1) table.put(row(`key ${i}`));
    for (let i = 0; i < 5_000; i += 1) table.remove(tokenSha256(`key ${i}`));
    for (let i = 0; i < 5_000; i += 1) {
      table.put(row(`later ${i}`));
      table.remove(tokenSha256(`later ${i}`));
    }
    expect(table.counters.keys).toBe(1);
    expect(table.lookup(tokenSha256("kept"))).toMatchObject({ account: "kept", policy });
  });

  it("knows whose each key is, however often accounts and plans come and go", () => {
    const rng = createRng(11);
    const table = createKeyTable();
    const model = new Map<string, { readonly account: string; readonly plan: string }>();
    const bursts = new Map<string, number>();
    for (let step = 0; step < 20_000; step += 1) {
      const token = `t ${rng.below(30)}`;
      const account = `a ${rng.below(40)}`;
      const name = `p ${rng.below(5)}`;
      if (rng.chance(3)) {
        expect(table.remove(tokenSha256(token))).toBe(model.delete(token));
      } else if (rng.chance(20)) {
        bursts.set(name, step + 1);
        table.setPlan({ ...plan, name, burst: step + 1 });
      } else {
        const own = { ...plan, name, burst: bursts.get(name) ?? plan.burst };
        table.put({ ...row(token, account), plan: own });
        model.set(token, { account, plan: name });
      }
    }
    for (let number = 0; number < 30; number += 1) {
      const wanted = model.get(`t ${number}`) ?? null;
      const found = table.lookup(tokenSha256(`t ${number}`));
      expect(found && { account: found.account, plan: found.plan.name }).toEqual(wanted);
      if (found !== null) expect(found.plan.burst).toBe(bursts.get(found.plan.name) ?? plan.burst);
    }
    for (let number = 0; number < 40; number += 1) {
      const account = `a ${number}`;
      const mine = [...model].filter(([, of]) => of.account === account);
      const hex = mine.map(([token]) => tokenSha256(token).toString("hex"));
      const told = table.digestsOf(new Set([account])).map((digest) => digest.toString("hex"));
      expect(told.toSorted()).toEqual(hex.toSorted());
    }
  });

  it("changes a plan for all keys that are on it", () => {
    const table = createKeyTable([row("a"), row("b")]);
    const wider = { ...plan, burst: 9 };
    table.setPlan(wider);
    expect(table.lookup(tokenSha256("a"))?.plan).toEqual(wider);
    expect(table.lookup(tokenSha256("b"))?.plan).toEqual(wider);
  });

  it("counts every change, so that nothing looked up before outlives one", () => {
    const table = createKeyTable([row("a")]);
    const rises = (act: () => unknown): boolean => {
      const before = table.changes;
      act();
      return table.changes > before;
    };
    expect(rises(() => table.put(row("b")))).toBe(true);
    expect(rises(() => table.put(row("b", "other")))).toBe(true);
    expect(rises(() => table.setPlan({ ...plan, burst: 9 }))).toBe(true);
    expect(rises(() => table.remove(tokenSha256("b")))).toBe(true);
    expect(rises(() => table.remove(tokenSha256("b")))).toBe(false);
    expect(rises(() => table.replace([row("c")]))).toBe(true);
    const rebuild = table.startRebuild();
    expect(rises(() => rebuild.put(row("d")))).toBe(false);
    expect(rises(() => rebuild.finish())).toBe(true);
    expect(rises(() => table.lookup(tokenSha256("d")))).toBe(false);
  });

  it("tells of changes once for all that are made in one go", async () => {
    const table = createKeyTable([row("a")]);
    const told: number[] = [];
    table.put(row("before"));
    table.onChange(() => told.push(table.changes));
    table.onChange(() => told.push(-1));
    await Promise.resolve();
    expect(told).toEqual([]);
    table.put(row("b"));
    table.remove(tokenSha256("a"));
    table.setPlan({ ...plan, burst: 9 });
    expect(told).toEqual([]);
    await Promise.resolve();
    expect(told).toEqual([table.changes, -1]);
    table.remove(tokenSha256("a"));
    table.startRebuild().put(row("c"));
    await Promise.resolve();
    expect(told).toHaveLength(2);
    table.replace([row("c")]);
    await Promise.resolve();
    expect(told).toEqual([4, -1, 5, -1]);
  });

  it("names the keys of an account", () => {
    const table = createKeyTable([row("a", "x"), row("b", "y"), row("c", "x")]);
    expect(new Set(table.digestsOf(new Set(["x"])))).toEqual(
      new Set([tokenSha256("a"), tokenSha256("c")]),
    );
    expect(table.digestsOf(new Set(["nobody"]))).toEqual([]);
  });

  it("is filled in steps and taken over at the end", () => {
    const table = createKeyTable([row("a")]);
    const rebuild = table.startRebuild();
    expect(rebuild.put(row("b"))).toBe(true);
    expect(table.lookup(tokenSha256("b"))).toBeNull();
    rebuild.finish();
    expect(table.lookup(tokenSha256("b"))?.account).toBe("b");
    expect(table.lookup(tokenSha256("a"))).toBeNull();
  });

  it("misses no key that stays when it is read while others go", () => {
    const tokens = Array.from({ length: 300 }, (_, i) => `key ${i}`);
    const table = createKeyTable(tokens.map((token) => row(token)));
    const read = new Set<string>();
    let step = 0;
    for (const { account } of table.rows()) {
      read.add(account);
      if (step < 100) table.remove(tokenSha256(`key ${step * 2}`));
      step += 1;
    }
    const staying = tokens.filter((_, i) => i >= 200 || i % 2 === 1);
    expect(staying.filter((token) => !read.has(token))).toEqual([]);
  });
});
