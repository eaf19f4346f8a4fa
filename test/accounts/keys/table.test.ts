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
  isDerived: false,
});

describe("key table", () => {
  it("finds a key by its digest only", () => {
    const table = createKeyTable([row("a"), row("b")]);
    expect(table.lookup(tokenSha256("a"))?.account).toBe("a");
    expect(table.lookup(tokenSha256("c"))).toBeNull();
    expect(table.counters.keys).toBe(2);
  });

  it("counts a key that follows from an API key with that", () => {
    const derived = { ...row("derived of a", "a"), isDerived: true };
    const table = createKeyTable([row("a"), derived, row("b")]);
    expect(table.counters.keys).toBe(2);
    table.put({ ...derived, isDerived: false });
    expect(table.counters.keys).toBe(3);
    table.put(derived);
    table.remove(tokenSha256("a"));
    expect(table.counters.keys).toBe(1);
    table.remove(derived.sha256);
    expect(table.counters.keys).toBe(1);
    table.replace([row("c"), { ...row("d"), isDerived: true }]);
    expect(table.counters.keys).toBe(1);
    expect([...table.rows()].filter(({ isDerived }) => isDerived)).toHaveLength(1);
  });

  it("compares the complete digest", () => {
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

  it("is replaced completely, and keeps its keys if the new ones cannot be read", () => {
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

  it("returns the id, account, plan and policy of a key", () => {
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

  it("drops a policy with its key, and assigns it to no other key", () => {
    const withPolicy = (token: string, burst: number): KeyRow => ({
      ...row(token),
      policy: { expiresUnixMs: null, networks: null, limit: { ratePerSecond: 1, burst } },
    });
    const table = createKeyTable([withPolicy("a", 1), row("b"), withPolicy("c", 3)]);
    const burstOf = (token: string) => {
      return table.lookup(tokenSha256(token))?.policy?.limit?.burst ?? null;
    };
    table.remove(tokenSha256("a"));
    table.put(withPolicy("d", 4));
    table.put(withPolicy("c", 5));
    table.put(row("d"));
    table.put(withPolicy("e", 6));
    expect(["b", "c", "d", "e"].map(burstOf)).toEqual([null, 5, null, 6]);
  });

  it("replaces a key with its changed version", () => {
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

  it("behaves like a Map for any sequence of puts and removals", () => {
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

  it("grows, and keeps its key while 10,000 others are added and removed", () => {
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

  it("returns the account and plan of each key after 20,000 random changes", () => {
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
      const owned = [...model].filter(([, of]) => of.account === account);
      const hex = owned.map(([token]) => tokenSha256(token).toString("hex"));
      const listed = table.digestsOf(new Set([account])).map((digest) => digest.toString("hex"));
      expect(listed.toSorted()).toEqual(hex.toSorted());
    }
  });

  it("changes a plan for all of its keys", () => {
    const table = createKeyTable([row("a"), row("b")]);
    const wider = { ...plan, burst: 9 };
    table.setPlan(wider);
    expect(table.lookup(tokenSha256("a"))?.plan).toEqual(wider);
    expect(table.lookup(tokenSha256("b"))?.plan).toEqual(wider);
  });

  it("counts every change, so that callers can invalidate earlier lookups", () => {
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

  it("has a follower wait for keys that were not read yet, and not for those of no key", () => {
    const finished: string[] = [];
    const followerOf = (name: string) => ({
      put() {},
      remove() {},
      setPlan() {},
      startRebuild: () => ({ put() {}, putLent() {}, finish: () => finished.push(name) }),
    });
    createKeyTable().follow(followerOf("unread"));
    createKeyTable([]).follow(followerOf("of no key"));
    const emptied = createKeyTable();
    emptied.startRebuild().finish();
    emptied.follow(followerOf("read"));
    const replaced = createKeyTable();
    replaced.replace([]);
    replaced.follow(followerOf("replaced"));
    expect(finished).toEqual(["of no key", "read", "replaced"]);
  });

  it("has a follower take every change, and all keys at first", () => {
    const table = createKeyTable([row("1")]);
    const seen: string[] = [];
    const hex = (sha256: Buffer) => sha256.toString("hex", 0, 2);
    table.follow({
      put: ({ sha256 }) => void seen.push(`put ${hex(sha256)}`),
      remove: (sha256) => void seen.push(`remove ${hex(sha256)}`),
      setPlan: ({ name }) => void seen.push(`plan ${name}`),
      startRebuild: () => ({
        put: ({ sha256 }) => void seen.push(`next ${hex(sha256)}`),
        putLent: ({ bytes, sha256At }) => void seen.push(`lent ${hex(bytes.subarray(sha256At))}`),
        finish: () => void seen.push("finish"),
      }),
    });
    const [one, two] = [row("1"), row("2")].map(({ sha256 }) => hex(sha256));
    expect(seen.splice(0)).toEqual([`next ${one}`, "finish"]);
    table.put(row("2"));
    table.remove(row("1").sha256);
    table.remove(row("1").sha256);
    table.setPlan(row("1").plan);
    expect(seen.splice(0)).toEqual([`put ${two}`, `remove ${one}`, `plan ${row("1").plan.name}`]);
    table.replace([row("1")]);
    expect(seen.splice(0)).toEqual([`next ${one}`, "finish"]);
    const rebuild = table.startRebuild();
    rebuild.put(row("2"));
    const { account, plan, policy, sha256 } = row("1");
    const bytes = Buffer.concat([Buffer.alloc(16), sha256]);
    rebuild.putLent({ account, plan, policy, isDerived: false, bytes, idAt: 0, sha256At: 16 });
    expect(seen.splice(0)).toEqual([`next ${two}`, `lent ${one}`]);
    rebuild.finish();
    expect(seen).toEqual(["finish"]);
  });

  it("lists the digests of an account's keys", () => {
    const table = createKeyTable([row("a", "x"), row("b", "y"), row("c", "x")]);
    expect(new Set(table.digestsOf(new Set(["x"])))).toEqual(
      new Set([tokenSha256("a"), tokenSha256("c")]),
    );
    expect(table.digestsOf(new Set(["unknown"]))).toEqual([]);
  });

  it("is rebuilt in steps, and replaced at the end", () => {
    const table = createKeyTable([row("a")]);
    const rebuild = table.startRebuild();
    expect(rebuild.put(row("b"))).toBe(true);
    expect(table.lookup(tokenSha256("b"))).toBeNull();
    rebuild.finish();
    expect(table.lookup(tokenSha256("b"))?.account).toBe("b");
    expect(table.lookup(tokenSha256("a"))).toBeNull();
  });

  it("lists every remaining key while others are removed", () => {
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
