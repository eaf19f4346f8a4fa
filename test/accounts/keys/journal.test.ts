import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKeyJournal } from "../../../src/accounts/keys/journal.ts";
import { type KeyChanges, lineOf } from "../../../src/accounts/keys/journal-line.ts";
import type { StoredKey } from "../../../src/accounts/keys/key.ts";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import type { Revision } from "../../../src/accounts/keys/revision.ts";
import { createKeyTable, type KeyTable } from "../../../src/accounts/keys/table.ts";
import { KEY_JOURNAL_LINE_BYTES_MAX } from "../../../src/accounts/limits.ts";
import { networksOf } from "../../../src/runtime/networks.ts";

const plan = { name: "P", ratePerSecond: 5, burst: 7, shared: true };
const key = (token: string, account = token): StoredKey => ({
  sha256: tokenSha256(token),
  keyId: tokenSha256(token).toString("hex", 0, 16),
  account,
  plan,
  policy: null,
  isDerived: false,
});
const at = (number: number): Revision => ({ number, mark: `mark ${number}` });
const change = (revision: number, parts: Partial<KeyChanges>): KeyChanges => ({
  since: at(revision - 1),
  revision: at(revision),
  plans: [],
  puts: [],
  removals: [],
  ...parts,
});
const pause = (): Promise<void> => Promise.resolve();
const tableOf = (...tokens: readonly string[]): KeyTable => {
  const table = createKeyTable();
  for (const token of tokens) table.put(key(token));
  return table;
};
const accountsOf = (table: KeyTable): string[] => [...table.rows()].map((it) => it.account).sort();

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-journal-"));
  path = join(folder, "state", "keys.journal");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Loads the journal as a starting edge does. */
function restarted(): { readonly table: KeyTable; readonly revision: number | null } {
  const table = createKeyTable();
  const journal = createKeyJournal(path);
  const revision = journal.load(table)?.number ?? null;
  journal.close();
  return { table, revision };
}

describe("key journal", () => {
  it("restores every key with its policy", async () => {
    const policy = {
      expiresUnixMs: 1_800_000_000_000,
      networks: networksOf(["10.0.0.0/8"]),
      limit: { ratePerSecond: 0.5, burst: 1 },
    };
    const table = tableOf("a");
    table.put({ ...key("b"), policy });
    await createKeyJournal(path).rewrite(table, at(42), pause);
    const after = restarted();
    expect(after.revision).toBe(42);
    expect(after.table.lookup(tokenSha256("a"))).toEqual(table.lookup(tokenSha256("a")));
    const found = after.table.lookup(tokenSha256("b"));
    expect(found?.policy).toMatchObject({ expiresUnixMs: 1_800_000_000_000 });
    expect(found?.policy?.limit).toEqual({ ratePerSecond: 0.5, burst: 1 });
    expect(found?.policy?.networks?.includes("10.9.9.9")).toBe(true);
    expect(found?.policy?.networks?.includes("11.9.9.9")).toBe(false);
  });

  it("has no keys without a file, or without a complete set", () => {
    expect(restarted().revision).toBeNull();
    const journal = createKeyJournal(path);
    journal.append(change(2, { puts: [key("a")] }));
    journal.close();
    expect(restarted().revision).toBeNull();
  });

  it("applies later changes in their order", async () => {
    const journal = createKeyJournal(path);
    await journal.rewrite(tableOf("a", "b"), at(1), pause);
    journal.append(change(2, { removals: [tokenSha256("a")] }));
    journal.append(change(3, { puts: [key("c")], plans: [{ ...plan, burst: 99 }] }));
    const { table, revision } = restarted();
    expect(revision).toBe(3);
    expect(accountsOf(table)).toEqual(["b", "c"]);
    expect(table.lookup(tokenSha256("b"))?.plan.burst).toBe(99);
  });

  it("continues after a restart", async () => {
    await createKeyJournal(path).rewrite(tableOf("a"), at(1), pause);
    const journal = createKeyJournal(path);
    journal.load(createKeyTable());
    journal.append(change(2, { puts: [key("b")] }));
    journal.append(change(3, { puts: [key("c")] }));
    expect(accountsOf(restarted().table)).toEqual(["a", "b", "c"]);
  });

  it("truncates an incomplete line, and appends after the last complete one", async () => {
    const first = createKeyJournal(path);
    await first.rewrite(tableOf("a"), at(1), pause);
    first.append(change(2, { puts: [key("b")] }));
    const completeBytes = statSync(path).size;
    first.append(change(3, { removals: [tokenSha256("a")] }));
    const text = readFileSync(path);
    for (let size = completeBytes + 1; size < text.length; size += 7) {
      writeFileSync(path, text.subarray(0, size));
      const table = createKeyTable();
      const journal = createKeyJournal(path);
      expect(journal.load(table)).toEqual(at(2));
      expect(accountsOf(table)).toEqual(["a", "b"]);
      expect(journal.counters.bytesCut).toBe(size - completeBytes);
      journal.append(change(3, { puts: [key("d")] }));
      journal.close();
      expect(accountsOf(restarted().table)).toEqual(["a", "b", "d"]);
    }
  });

  it("ignores an altered line and all lines after it", async () => {
    const journal = createKeyJournal(path);
    await journal.rewrite(tableOf("a"), at(1), pause);
    const completeBytes = statSync(path).size;
    journal.append(change(2, { puts: [key("b")] }));
    journal.append(change(3, { puts: [key("c")] }));
    const text = readFileSync(path);
    text.writeUInt8(text.readUInt8(completeBytes + 30) ^ 1, completeBytes + 30);
    writeFileSync(path, text);
    const after = restarted();
    expect(after.revision).toBe(1);
    expect(accountsOf(after.table)).toEqual(["a"]);
    appendFileSync(path, "garbage without an end");
    expect(accountsOf(restarted().table)).toEqual(["a"]);
  });

  it("keeps changes that arrive during a rewrite", async () => {
    const table = tableOf(...Array.from({ length: 1_000 }, (_, i) => `key ${i}`));
    const journal = createKeyJournal(path);
    await journal.rewrite(table, at(1), pause);
    let pauses = 0;
    await journal.rewrite(table, at(1), async () => {
      pauses += 1;
      if (pauses !== 2) return;
      table.remove(tokenSha256("key 1"));
      journal.append(change(2, { removals: [tokenSha256("key 1")] }));
    });
    expect(pauses).toBeGreaterThan(2);
    const after = restarted();
    expect(after.revision).toBe(2);
    expect(after.table.counters.keys).toBe(999);
    expect(after.table.lookup(tokenSha256("key 1"))).toBeNull();
  });

  it("needs a rewrite when changes outweigh the set, and none after it", async () => {
    const table = tableOf("a");
    const journal = createKeyJournal(path);
    await journal.rewrite(table, at(1), pause);
    const many = Array.from({ length: 2_000 }, (_, i) => key(`key ${i}`));
    expect(journal.needsRewrite).toBe(false);
    for (let revision = 2; !journal.needsRewrite; revision += 1) {
      journal.append(change(revision, { puts: many }));
      expect(revision).toBeLessThan(100);
    }
    await journal.rewrite(table, at(100), pause);
    expect(journal.needsRewrite).toBe(false);
    expect(restarted()).toMatchObject({ revision: 100 });
  });

  it("stores only removals after a missed change, until it is rewritten", async () => {
    const table = tableOf("a", "b", "c");
    const journal = createKeyJournal(path);
    await journal.rewrite(table, at(1), pause);
    // Revision 2 removed "a" and was lost.
    journal.append(change(3, { removals: [tokenSha256("b")], puts: [key("d")] }));
    expect(journal.needsRewrite).toBe(true);
    expect(restarted().revision).toBe(1);
    expect(accountsOf(restarted().table)).toEqual(["a", "c"]);
    for (const row of ["a", "b"]) table.remove(tokenSha256(row));
    await journal.rewrite(table, at(3), pause);
    expect(journal.needsRewrite).toBe(false);
    journal.append(change(4, { puts: [key("d")] }));
    expect(accountsOf(restarted().table)).toEqual(["c", "d"]);
  });

  it("needs a rewrite as long as rewrites fail", async () => {
    const first = createKeyJournal(path);
    await first.rewrite(tableOf("a"), at(1), pause);
    first.close();
    const journal = createKeyJournal(path);
    journal.load(createKeyTable());
    expect(journal.needsRewrite).toBe(false);
    // Writing fails because a folder has this name.
    mkdirSync(`${path}.new`);
    await expect(journal.rewrite(tableOf("b"), at(2), pause)).rejects.toThrow();
    expect(journal.needsRewrite).toBe(true);
    rmdirSync(`${path}.new`);
    await journal.rewrite(tableOf("b"), at(2), pause);
    expect(journal.needsRewrite).toBe(false);
    journal.close();
  });

  it("keeps removals of more keys than fit in one line", async () => {
    const journal = createKeyJournal(path);
    await journal.rewrite(tableOf("a", "b"), at(1), pause);
    const removals = new Array<Buffer>(200_000).fill(tokenSha256("a"));
    journal.append(change(2, { removals, puts: [key("c")] }));
    journal.close();
    // For any number of removals, each line stays far below the maximum that is read.
    const longest = Math.max(
      ...readFileSync(path, "utf8")
        .split("\n")
        .map(({ length }) => length),
    );
    expect(statSync(path).size).toBeGreaterThan(200_000 * 44);
    expect(longest).toBeLessThan(KEY_JOURNAL_LINE_BYTES_MAX / 16);
    const { table, revision } = restarted();
    expect(accountsOf(table)).toEqual(["b", "c"]);
    expect(revision).toBe(2);
  });

  it("rejects a change of another history, even with the next number", async () => {
    const journal = createKeyJournal(path);
    await journal.rewrite(tableOf("a"), at(1), pause);
    const since = { number: 1, mark: "of a restored database" };
    journal.append(change(2, { since, puts: [key("b")] }));
    expect(journal.needsRewrite).toBe(true);
    expect(restarted().revision).toBe(1);
    appendFileSync(path, lineOf("change", change(2, { since, puts: [key("b")] })));
    expect(accountsOf(restarted().table)).toEqual(["a"]);
  });

  it("is read up to the first gap in the changes", async () => {
    const journal = createKeyJournal(path);
    await journal.rewrite(tableOf("a"), at(1), pause);
    const next = lineOf("change", change(2, { puts: [key("b")] }));
    const afterNext = lineOf("change", change(4, { puts: [key("c")] }));
    appendFileSync(path, Buffer.concat([next, afterNext]));
    expect(restarted().revision).toBe(2);
    expect(accountsOf(restarted().table)).toEqual(["a", "b"]);
  });

  it("stores the plan of every key that a change adds", async () => {
    const journal = createKeyJournal(path);
    await journal.rewrite(tableOf("a"), at(1), pause);
    journal.append(change(2, { puts: [{ ...key("b"), plan: { ...plan, name: "other" } }] }));
    const { table } = restarted();
    expect(table.lookup(tokenSha256("b"))?.plan.name).toBe("other");
  });

  it("abandons a rewrite for the next, and keeps changes since the start of that one", async () => {
    const old = tableOf(...Array.from({ length: 1_000 }, (_, i) => `old ${i}`));
    const journal = createKeyJournal(path);
    const first = journal.rewrite(
      old,
      at(1),
      () => new Promise((resolve) => setImmediate(resolve)),
    );
    await new Promise((resolve) => setImmediate(resolve));
    const second = journal.rewrite(tableOf("a", "b"), at(7), pause);
    journal.append(change(8, { removals: [tokenSha256("a")] }));
    await Promise.all([first, second]);
    expect(restarted().revision).toBe(8);
    expect(accountsOf(restarted().table)).toEqual(["b"]);
    expect(journal.counters.rewrites).toBe(1);
  });

  it("does not write to a file that another process has replaced", async () => {
    const [one, two] = [createKeyJournal(path), createKeyJournal(path)];
    await one.rewrite(tableOf("a"), at(1), pause);
    await two.rewrite(tableOf("b"), at(1), pause);
    expect(() => one.append(change(2, { puts: [key("c")] }))).toThrow("not the file");
    expect(one.needsRewrite).toBe(true);
    expect(accountsOf(restarted().table)).toEqual(["b"]);
  });

  it("is readable by its owner only, and contains no token", async () => {
    const table = createKeyTable([{ ...key("a secret token", "acme"), label: null }]);
    await createKeyJournal(path).rewrite(table, at(1), pause);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).not.toContain("secret");
  });
});
