import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { lentFolderName } from "../../src/sandbox/postgres-binaries.ts";
import { makeSandboxFolder, removeLeftovers } from "../../src/sandbox/sandbox-folder.ts";
import { silent } from "../support/postgres.ts";

const deps = { clock: systemClock, log: silent };
const children: ChildProcess[] = [];
let place = "";
/** The parents of temporary folders, and of the lent user's when run as root. */
let temporary = "";
let lent = "";
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "touchdown-leftovers-"));
  temporary = join(place, "temporary");
  lent = join(place, "lent");
  for (const path of [temporary, lent]) mkdirSync(path);
});
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  rmSync(place, { recursive: true, force: true });
});

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** A process that has made a sandbox's folder, and that folder. */
async function sandbox(): Promise<{ readonly child: ChildProcess; readonly folder: string }> {
  const built = join(import.meta.dirname, "../../dist/sandbox/sandbox-folder.js");
  const program = `import { makeSandboxFolder } from ${JSON.stringify(built)};
    process.stdout.write(makeSandboxFolder(${JSON.stringify(temporary)}));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [folder] = await once(child.stdout, "data");
  return { child, folder: String(folder) };
}

const remove = () => removeLeftovers(deps, temporary, lent);

describe("a folder left by a sandbox", () => {
  it("stays while its process lives, and is removed once that was killed", async () => {
    const [one, other] = [await sandbox(), await sandbox()];
    writeFileSync(join(one.folder, "keys.toml"), "secret");
    expect(await remove()).toEqual([]);
    await kill(one.child);
    expect(await remove()).toEqual([one.folder]);
    expect([existsSync(one.folder), existsSync(other.folder)]).toEqual([false, true]);
  });

  it("is removed with the data that root stored elsewhere for the other user", async () => {
    const { child, folder } = await sandbox();
    const postgres = join(lent, lentFolderName(join(folder, "postgres")));
    mkdirSync(join(postgres, "data"), { recursive: true });
    writeFileSync(join(postgres, "owner.json"), readFileSync(join(folder, "owner.json")));
    expect(await remove()).toEqual([]);
    await kill(child);
    expect(new Set(await remove())).toEqual(new Set([folder, postgres]));
    expect([existsSync(folder), existsSync(postgres)]).toEqual([false, false]);
  });

  it("is removed after the server that still runs on it", async () => {
    const { child, folder } = await sandbox();
    const data = join(folder, "postgres", "data");
    mkdirSync(data, { recursive: true });
    const program = 'setInterval(() => {}, 1000); process.stdout.write("up")';
    const server = spawn(process.execPath, ["-e", program, data, "postgres"]);
    children.push(server);
    const ended = once(server, "exit");
    await once(server.stdout, "data");
    writeFileSync(join(data, "postmaster.pid"), `${server.pid}\n`);
    await kill(child);
    expect(await remove()).toEqual([folder]);
    // The kernel knows of the process's end before this process is notified.
    expect(await ended).not.toEqual([null, null]);
  });

  it("stays if its process is not visible, not named, or was never a sandbox", async () => {
    const gone = { pid: 2 ** 22 + 1, start: "1", space: "pid:[1]" };
    const identity = JSON.stringify(gone);
    const made = (name: string, text: string | null): void => {
      mkdirSync(join(temporary, name));
      if (text !== null) writeFileSync(join(temporary, name, "owner.json"), text);
    };
    made("touchdown-sandbox-abcdef", identity);
    made("touchdown-sandbox-ABCDEF", null);
    made("touchdown-sandbox-123456", '{"pid":');
    const { child, folder } = await sandbox();
    await kill(child);
    const dead = readFileSync(join(folder, "owner.json"), "utf8");
    made("touchdown-sandbox-kept", dead);
    made("other-sandbox-abcdef", dead);
    made("elsewhere", dead);
    symlinkSync(join(temporary, "elsewhere"), join(temporary, "touchdown-sandbox-aaaaaa"));
    expect(await remove()).toEqual([folder]);
    expect(existsSync(join(temporary, "elsewhere", "owner.json"))).toBe(true);
  });

  it("causes no error when it does not exist", async () => {
    expect(await removeLeftovers(deps, join(place, "no"), join(place, "nor this"))).toEqual([]);
    expect(existsSync(makeSandboxFolder(temporary))).toBe(true);
    expect(await remove()).toEqual([]);
  });
});
