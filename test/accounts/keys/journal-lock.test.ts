import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockJournal } from "../../../src/accounts/keys/journal-lock.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-lock-"));
  path = join(folder, "keys.journal");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Makes the file, and writes nothing to it. */
function failingWith(code: string): typeof writeFileSync {
  return (file, _, options) => {
    writeFileSync(file, "", options);
    throw Object.assign(new Error(code), { code });
  };
}

describe("journal lock", () => {
  it("allows one edge at a time, and names the other", () => {
    const lock = lockJournal(path);
    expect(() => lockJournal(path)).toThrow(
      `${path} is in use by process ${process.pid}; each edge needs a journal of its own`,
    );
    lock.release();
    lockJournal(path).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("holds while its process runs, and is void after that was killed", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
    const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    const ended = new Promise((resolve) => child.once("exit", resolve));
    try {
      writeFileSync(`${path}.lock`, JSON.stringify({ pid: child.pid, start }));
      expect(() => lockJournal(path)).toThrow(`process ${child.pid}`);
      // The same pid with another start time: a different process.
      writeFileSync(`${path}.lock`, JSON.stringify({ pid: child.pid, start: "1" }));
      lockJournal(path).release();
      writeFileSync(`${path}.lock`, JSON.stringify({ pid: child.pid, start }));
    } finally {
      child.kill("SIGKILL");
      await ended;
    }
    lockJournal(path).release();
  });

  it("is held and given back on a full disk, which takes a file and no content", () => {
    const lock = lockJournal(path, failingWith("ENOSPC"));
    const [name = ""] = readdirSync(folder);
    expect(readFileSync(join(folder, name), "utf8")).toBe("");
    expect(() => lockJournal(path)).toThrow(`in use by process ${process.pid}`);
    expect(() => lockJournal(path, failingWith("EDQUOT"))).toThrow("in use by process");
    lock.release();
    lockJournal(path, failingWith("ENOSPC")).release();
    expect(readdirSync(folder)).toEqual([]);
    // As a process left it that had this number before.
    writeFileSync(join(folder, name.replace(/.{12}$/, "000000000001")), "");
    lockJournal(path, failingWith("ENOSPC")).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("leaves no file where the journal's folder cannot be written to", () => {
    expect(() => lockJournal(path, failingWith("EIO"))).toThrow(`${path} cannot be written to`);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("does not touch files that are no lock of this journal", () => {
    const others = [`${path}.lock.b`, `${path}.locked`, `${path}.lock.b.lock.1.x`];
    for (const other of others) writeFileSync(other, "");
    lockJournal(path).release();
    expect(
      readdirSync(folder)
        .map((name) => join(folder, name))
        .sort(),
    ).toEqual(others.sort());
  });

  it("is void if it was written incompletely", () => {
    writeFileSync(`${path}.lock`, '{"pid": ');
    lockJournal(path).release();
  });

  it("goes to exactly one of several processes that find a dead one's lock", async () => {
    const deadLock = JSON.stringify({ pid: 1, start: "1", space: null });
    const paths = Array.from({ length: 120 }, (_, index) => join(folder, `${index}.journal`));
    for (const each of paths) writeFileSync(`${each}.lock`, deadLock);
    const lockers = Array.from({ length: 4 }, () => startLocker(paths));
    try {
      await Promise.all(lockers.map(({ line }) => line()));
      for (const { process } of lockers) process.stdin.write("go\n");
      const acquired = await Promise.all(lockers.map(async ({ line }) => JSON.parse(await line())));
      const all = acquired.flat().sort((a, b) => a - b);
      expect(all).toEqual(paths.map((_, index) => index));
    } finally {
      for (const { process } of lockers) process.kill("SIGKILL");
    }
    // The files of killed and of late processes are gone.
    const remaining = readdirSync(folder).map(
      (name) => /^(\d+)\.journal\.lock\.\d+\./.exec(name)?.[1],
    );
    expect(remaining.map(Number).sort((a, b) => a - b)).toEqual(paths.map((_, index) => index));
  });
});

const LOCKER = join(import.meta.dirname, "../../support/journal-locker.ts");

function startLocker(paths: readonly string[]) {
  const child = spawn(process.execPath, ["--import", "tsx", LOCKER, ...paths], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { process: child, line: async (): Promise<string> => (await lines.next()).value ?? "" };
}
