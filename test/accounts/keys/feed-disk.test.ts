import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/accounts/database/database.ts";
import { createKeyFeed } from "../../../src/accounts/keys/feed.ts";
import { createKeyJournal } from "../../../src/accounts/keys/journal.ts";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import { createKeyTable } from "../../../src/accounts/keys/table.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { stub } from "../../support/stub.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-feed-disk-"));
  path = join(folder, "keys.journal");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What an edge logs about its disk when it starts while the database is unreachable. */
async function loggedAtStart(): Promise<readonly (readonly [object, string])[]> {
  const logged: (readonly [object, string])[] = [];
  const record = (facts: object, message: string): void => void logged.push([facts, message]);
  const unreachable = stub<Database>({ listen: () => ({ stop: () => Promise.resolve() }) });
  const feed = createKeyFeed({
    clock: createFakeClock(),
    log: { info: record, warn: record, error: record },
    database: unreachable,
    table: createKeyTable(),
    journal: createKeyJournal(path),
  });
  feed.start();
  await feed.stop();
  return logged;
}

async function writeOneKey(): Promise<void> {
  const table = createKeyTable();
  const sha256 = tokenSha256("one");
  const plan = { name: "P", ratePerSecond: 5, burst: 7, shared: false };
  table.put({ sha256, keyId: "a".repeat(32), account: "a", plan, policy: null, isDerived: false });
  const journal = createKeyJournal(path);
  await journal.rewrite(table, { number: 3, mark: "m" }, () => Promise.resolve());
  journal.close();
}

describe("edge that starts without its database", () => {
  it("logs the keys and the revision that it loaded from disk", async () => {
    await writeOneKey();
    expect(await loggedAtStart()).toEqual([[{ keys: 1, revision: 3 }, "keys taken from disk"]]);
  });

  it("logs that no keys are on disk yet", async () => {
    expect(await loggedAtStart()).toEqual([[{}, "no keys are on disk yet"]]);
  });

  it("logs the bytes cut from a journal that is damaged at its end or entirely", async () => {
    const message = "the keys on disk were not whole; what was is taken";
    await writeOneKey();
    appendFileSync(path, "half a li");
    expect(await loggedAtStart()).toEqual([[{ keys: 1, revision: 3, bytesCut: 9 }, message]]);
    writeFileSync(path, "something else\n");
    expect(await loggedAtStart()).toEqual([[{ keys: 0, revision: null, bytesCut: 15 }, message]]);
  });
});
