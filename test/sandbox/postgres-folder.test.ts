import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import {
  claim,
  endLeftover,
  openFolder,
  release,
  serverStatus,
} from "../../src/sandbox/postgres-folder.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const fresh = () => openFolder(join(mkdtempSync(join(tmpdir(), "folder-")), "kept"));

describe("the folder", () => {
  it("creates its passwords once and keeps the port that was found", () => {
    const folder = fresh();
    const facts = folder.facts();
    expect(new Set(Object.values(facts)).size).toBe(4);
    folder.keepPort(5433);
    expect(openFolder(folder.path).facts()).toEqual({ ...facts, port: 5433 });
  });

  it("reports damaged passwords instead of creating new ones", () => {
    const folder = fresh();
    for (const text of ["{", "{}"]) {
      writeFileSync(join(folder.path, "server.json"), text);
      expect(() => folder.facts()).toThrow(/server.json is damaged/);
    }
  });

  it("can be claimed after its owner has exited, released it, or wrote half a file", async () => {
    const folder = fresh();
    const file = join(folder.path, "owner.json");
    claim(folder);
    claim(folder);
    writeFileSync(file, JSON.stringify({ pid: process.ppid, start: "another time" }));
    claim(folder);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ pid: process.pid });
    writeFileSync(file, '{"pid":');
    claim(folder);
    await release(folder);
    expect(existsSync(file)).toBe(false);
  });
});

describe("a leftover", () => {
  const pidFile = (data: string): string => join(data, "postmaster.pid");

  it("file that names another program's process is removed; the process stays", async () => {
    const folder = fresh();
    mkdirSync(folder.data);
    const other = spawn("sleep", ["60"]);
    writeFileSync(pidFile(folder.data), `${other.pid}\n${folder.data}\n`);
    await endLeftover(folder, systemClock);
    expect(existsSync(pidFile(folder.data))).toBe(false);
    expect(other.exitCode ?? other.signalCode).toBeNull();
    other.kill("SIGKILL");
  });

  it("server that still runs is stopped with a signal", async () => {
    const folder = fresh();
    mkdirSync(folder.data);
    const program =
      'process.on("SIGINT", () => process.exit(3)); setInterval(() => {}, 1000); console.log("up")';
    const server = spawn(process.execPath, ["-e", program, folder.data, "postgres"]);
    // Note: "spawn" comes before the kernel shows the new command line; the first output does not.
    await once(server.stdout, "data");
    writeFileSync(pidFile(folder.data), `${server.pid}\n`);
    // Node reports the end some time after the kernel does.
    const ended = once(server, "exit");
    await endLeftover(folder, systemClock);
    expect(await ended).toEqual([3, null]);
    expect(existsSync(pidFile(folder.data))).toBe(false);
  });

  it("that does not exist needs nothing", async () => {
    await expect(endLeftover(fresh(), createFakeClock())).resolves.toBeUndefined();
  });
});

it("a server's status applies to that server only", () => {
  const folder = fresh();
  mkdirSync(folder.data);
  writeFileSync(join(folder.data, "postmaster.pid"), "42\nd\n0\n1\n\nh\n0\nready   \n");
  expect([serverStatus(folder, 42), serverStatus(folder, 43)]).toEqual(["ready", null]);
});
