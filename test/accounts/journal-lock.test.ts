import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockJournal } from "../../src/accounts/journal-lock.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-lock-"));
  path = join(folder, "keys.journal");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the lock of a journal", () => {
  it("lets one edge in at a time, and names the other", () => {
    const lock = lockJournal(path);
    expect(() => lockJournal(path)).toThrow(
      `${path} is in use by process ${process.pid}; each edge needs a journal of its own`,
    );
    lock.release();
    lockJournal(path).release();
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  it("of a living process holds, of one that was killed is void", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
    const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    const ended = new Promise((resolve) => child.once("exit", resolve));
    try {
      writeFileSync(`${path}.lock`, JSON.stringify({ pid: child.pid, start }));
      expect(() => lockJournal(path)).toThrow(`process ${child.pid}`);
      // The same number, started at another time: somebody else.
      writeFileSync(`${path}.lock`, JSON.stringify({ pid: child.pid, start: "1" }));
      lockJournal(path).release();
      writeFileSync(`${path}.lock`, JSON.stringify({ pid: child.pid, start }));
    } finally {
      child.kill("SIGKILL");
      await ended;
    }
    lockJournal(path).release();
  });

  it("that was not written whole is void", () => {
    writeFileSync(`${path}.lock`, '{"pid": ');
    lockJournal(path).release();
  });
});
