import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  decodedKey,
  lineOf,
  linesOf,
  parsedLine,
} from "../../../src/accounts/keys/journal-line.ts";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import type { Revision } from "../../../src/accounts/keys/revision.ts";

const plan = { name: "P", ratePerSecond: 5, burst: 7, shared: true };
const put = {
  sha256: tokenSha256("a"),
  keyId: "ab".repeat(16),
  account: "acme",
  plan,
  policy: null,
  isDerived: false,
};
const [since, revision] = [4, 5].map((number) => ({ number, mark: `mark ${number}` })) as [
  Revision,
  Revision,
]; // Two elements in, two out.
const changes = { since, revision, plans: [], puts: [put], removals: [tokenSha256("b")] };

describe("key journal line", () => {
  it("decodes to its changes, including the plans of its keys", () => {
    const line = parsedLine(lineOf("change", changes).toString().trimEnd());
    expect(line).toMatchObject({ step: "change", since, revision, plans: [plan] });
    const [key] = line?.puts ?? [];
    if (key === undefined) throw new Error("no key");
    expect(decodedKey(key, new Map([["P", plan]]))).toEqual(put);
    expect(() => decodedKey(key, new Map())).toThrow("names no plan P");
  });

  it("tells which keys follow from an API key, and of a version before that none does", () => {
    const derived = { ...put, sha256: tokenSha256("derived"), isDerived: true };
    const line = parsedLine(
      lineOf("change", { ...changes, puts: [put, derived] })
        .toString()
        .trimEnd(),
    );
    const decoded = (line?.puts ?? []).map((key) => decodedKey(key, new Map([["P", plan]])));
    expect(decoded).toEqual([put, derived]);
    expect(line?.puts.map((key) => key.length)).toEqual([5, 6]);
  });

  it("decodes if it was written before revisions had marks", () => {
    const json = JSON.stringify({ step: "last", since: 4, revision: 4, plans: [], puts: [] });
    const text = `${crc32(json).toString(16).padStart(8, "0")} ${json}`;
    expect(parsedLine(text)?.revision).toEqual({ number: 4, mark: null });
  });

  it("has a checksum that versions without marks reject", () => {
    // Such a version would read the mark as a number.
    const text = lineOf("last", changes).toString().trimEnd();
    const json = text.slice(9);
    expect(text.slice(0, 8)).not.toBe(crc32(json).toString(16).padStart(8, "0"));
    expect(parsedLine(text)?.revision).toEqual(revision);
  });

  it("is rejected if it is truncated or one byte differs", () => {
    const text = lineOf("change", changes).toString().trimEnd();
    for (let cut = 0; cut < text.length; cut += 3) {
      expect(parsedLine(text.slice(0, cut))).toBeNull();
      const other = text[cut] === "1" ? "2" : "1";
      expect(parsedLine(text.slice(0, cut) + other + text.slice(cut + 1))).toBeNull();
    }
  });
});

describe("lines of a file", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "touchdown-lines-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("are found across chunks, with null for a last line without an end", () => {
    const path = join(folder, "lines");
    const long = "x".repeat(1_500_000);
    writeFileSync(path, `one\n${long}\n\nlast`);
    const file = openSync(path, "r");
    const lines = [...linesOf(file)];
    closeSync(file);
    expect(lines.map(({ text }) => text)).toEqual(["one", long, "", null]);
    expect(lines.map(({ end }) => end)).toEqual([4, 1_500_005, 1_500_006, 1_500_010]);
  });
});
