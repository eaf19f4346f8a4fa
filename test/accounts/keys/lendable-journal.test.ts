import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { lockJournal } from "../../../src/accounts/keys/journal-lock.ts";
import { openLendableJournal } from "../../../src/accounts/keys/lendable-journal.ts";
import { createKeyTable } from "../../../src/accounts/keys/table.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-lent-"));
  path = join(folder, "keys.journal");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const REVISION = { number: 1, mark: null };
const pause = (): Promise<void> => Promise.resolve();

it("a lent journal is another process's, and is rewritten when it is taken back", async () => {
  const table = createKeyTable();
  const journal = openLendableJournal(path);
  expect(() => lockJournal(path)).toThrow("is in use");
  await journal.rewrite(table, REVISION, pause);
  expect(journal.needsRewrite).toBe(false);

  journal.lend();
  const other = openLendableJournal(path);
  expect(other.load(createKeyTable())).toEqual(REVISION);
  const { appends, rewrites } = journal.counters;
  await journal.rewrite(table, { ...REVISION, number: 2 }, pause);
  journal.append({ since: REVISION, revision: REVISION, plans: [], puts: [], removals: [] });
  expect(journal.needsRewrite).toBe(false);
  expect(journal.counters).toMatchObject({ appends, rewrites });
  expect(() => journal.takeBack()).toThrow("is in use");
  other.close();

  journal.takeBack();
  journal.takeBack();
  expect(() => lockJournal(path)).toThrow("is in use");
  expect(journal.needsRewrite).toBe(true);
  await journal.rewrite(table, { ...REVISION, number: 3 }, pause);
  journal.close();
  expect(openLendableJournal(path).load(createKeyTable())?.number).toBe(3);
});

it("a closed journal leaves no lock behind", () => {
  openLendableJournal(path).close();
  expect(readdirSync(folder)).toEqual([]);
});
