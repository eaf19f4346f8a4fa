import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createDatabase, type Database } from "../../src/accounts/database/database.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type Postgres, startPostgres } from "../../src/sandbox/postgres.ts";
import { freePort } from "../support/ports.ts";
import { silent } from "../support/postgres.ts";
import { until } from "../support/wait.ts";

/** How often the server is killed; 50 with STORE_KILLS=50. */
const KILLS = Number(process.env["STORE_KILLS"] ?? "5");
const deps = { clock: systemClock, log: silent };

const running: Postgres[] = [];
const folders: string[] = [];
const opened: Database[] = [];

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), "postgres-"));
  chmodSync(folder, 0o755);
  folders.push(folder);
  return join(folder, "kept");
}

async function start(folder: string, port: number | null = null): Promise<Postgres> {
  const postgres = await startPostgres(deps, { folder, port });
  running.push(postgres);
  return postgres;
}

/** A separate process that runs a server in this folder; the test kills it. */
async function ownedServer(folder: string, how: "guarded" | "outlives") {
  const program = join(import.meta.dirname, "../support/postgres-owner.mjs");
  const owner = spawn(process.execPath, [program, folder, how, String(await freePort())], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(owner, "exit");
  const line = await Promise.race([
    once(owner.stdout, "data"),
    exited.then(([code]) => Promise.reject(new Error(`the owner ended with ${String(code)}`))),
  ]);
  const left: { url: string; pid: number } = JSON.parse(String(line[0]));
  return {
    ...left,
    async kill() {
      owner.kill("SIGKILL");
      await exited;
    },
  };
}

/** Whether the process exists; a zombie does not count. */
function lives(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    // The process has ended.
    return false;
  }
}

function connect(url: string): Database {
  const database = createDatabase(deps, { url });
  opened.push(database);
  return database;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.stop()));
  await Promise.all(running.splice(0).map((postgres) => postgres.stop()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

describe("an embedded Postgres", () => {
  it("keeps committed data, its port and its passwords over a restart", async () => {
    const folder = place();
    // A port that no other program takes while the server is stopped.
    const first = await start(folder, await freePort());
    await connect(first.ownerUrl).query("create table kept as select 7 as n");
    await first.stop();
    const second = await start(folder);
    expect(second.ownerUrl).toBe(first.ownerUrl);
    expect(await connect(second.ownerUrl).query("select n from kept")).toEqual([{ n: 7 }]);
    expect(await connect(second.edgeUrl).query("select current_user::text as who")).toEqual([
      { who: "edge" },
    ]);
  });

  it("shows its passwords only to its owner, and never in its log", async () => {
    const { folder, ownerUrl } = await start(place());
    expect(statSync(join(folder, "server.json")).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).filter((name) => name.includes("initdb"))).toEqual([]);
    const password = new URL(ownerUrl).password;
    expect(readFileSync(join(folder, "server.log"), "utf8")).not.toContain(password);
  });

  it("rejects a second owner while the first one lives", async () => {
    const { folder } = await start(place());
    const other = join(folder, "owner.json");
    // The test's parent process is alive, and is not this one.
    const { ppid } = process;
    const stat = readFileSync(`/proc/${ppid}/stat`, "utf8");
    const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    writeFileSync(other, JSON.stringify({ pid: ppid, start: ticks }));
    await expect(start(folder)).rejects.toThrow(`is in use by process ${ppid}`);
  });

  it("stops when its owner is killed, and the next owner finds its data", async () => {
    const folder = place();
    const left = await ownedServer(folder, "guarded");
    await connect(left.url).query("create table kept as select 7 as n");
    await left.kill();
    await until("the end of the server", () => !lives(left.pid), 60_000);
    const next = await start(folder);
    expect(await connect(next.ownerUrl).query("select n from kept")).toEqual([{ n: 7 }]);
  });

  it("that outlived its owner is taken over by the next one, with its data", async () => {
    const folder = place();
    const left = await ownedServer(folder, "outlives");
    await connect(left.url).query("create table kept as select 7 as n");
    await left.kill();
    expect(await connect(left.url).query("select n from kept")).toEqual([{ n: 7 }]);
    const next = await start(folder);
    expect(next.pid()).not.toBe(left.pid);
    expect(next.ownerUrl).toBe(left.url);
    expect(await connect(next.ownerUrl).query("select n from kept")).toEqual([{ n: 7 }]);
  });

  it("starts after kill -9 of owner and server together", async () => {
    const folder = place();
    const left = await ownedServer(folder, "guarded");
    await connect(left.url).query("create table kept as select 7 as n");
    await Promise.all([left.kill(), process.kill(left.pid, "SIGKILL")]);
    const next = await start(folder);
    expect(await connect(next.ownerUrl).query("select n from kept")).toEqual([{ n: 7 }]);
  });

  it("does not crash its process when its folder is removed, and can be stopped", async () => {
    const folder = place();
    const errors: string[] = [];
    const log = { ...silent, error: (_: object, text: string) => void errors.push(text) };
    const postgres = await startPostgres({ ...deps, log }, { folder, port: null });
    rmSync(postgres.folder, { recursive: true, force: true });
    process.kill(postgres.pid(), "SIGKILL");
    await until(
      "a second try",
      () => errors.filter((text) => /does not start/.test(text)).length > 1,
    );
    await postgres.stop();
    expect(postgres.counters.restarts).toBe(0);
  });

  it(`loses nothing that was committed when it is killed ${KILLS} times`, async () => {
    const postgres = await start(place());
    const database = connect(postgres.ownerUrl);
    await database.query("create table written (n int primary key)");
    const committed: number[] = [];
    let next = 0;
    let writing = true;
    const write = async (): Promise<void> => {
      while (writing) {
        next += 1;
        const n = next;
        await database.query("insert into written values ($1)", [n]).then(
          () => void committed.push(n),
          // No response, so nothing was promised.
          () => new Promise((resolve) => systemClock.after(5, () => resolve(null))),
        );
      }
    };
    const writers = [write(), write()];
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const goal = committed.length + 20;
      await until("some more rows", () => committed.length >= goal);
      process.kill(postgres.pid(), "SIGKILL");
      await until("the server is back", () => postgres.counters.restarts >= kill);
    }
    writing = false;
    await Promise.all(writers);
    const rows = await connect(postgres.ownerUrl).query<{ n: number }>("select n from written");
    const found = new Set(rows.map(({ n }) => n));
    expect(committed.filter((n) => !found.has(n))).toEqual([]);
    expect(committed.length).toBeGreaterThanOrEqual(KILLS * 20);
  }, 600_000);
});
