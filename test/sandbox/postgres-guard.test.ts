import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { guardServer } from "../../src/sandbox/postgres-guard.ts";
import { until } from "../support/wait.ts";

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** A process that runs on this data until it is ended, and prints when it runs. */
async function server(data: string, ignoring = ""): Promise<ChildProcess> {
  const program = `${ignoring} process.stdout.write("up"); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["-e", program, "--", "-D", data], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  await once(child.stdout, "data");
  return child;
}

/** A process that guards this one, and lives until it is killed. */
async function owner(pid: number, data: string): Promise<ChildProcess> {
  const built = join(import.meta.dirname, "../../dist/sandbox/postgres-guard.js");
  const program = `import { guardServer } from ${JSON.stringify(built)};
    guardServer({ pid: ${pid}, data: ${JSON.stringify(data)} }, null, 1);
    process.stdout.write("up"); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  await once(child.stdout, "data");
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

const folder = (): string => mkdtempSync(join(tmpdir(), "guard-"));
const ended = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

/** The shells that guard this process. */
function guardsOf(pid: number): readonly string[] {
  const shells = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8");
  return shells.split(" ").filter((child) => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, "utf8").includes(`guard\0${pid}\0`);
    } catch {
      // It ended meanwhile.
      return false;
    }
  });
}

describe("the guard of a server", () => {
  it("stops it when its owner is killed", async () => {
    const data = folder();
    const child = await server(data);
    await kill(await owner(child.pid ?? 0, data));
    await until("its end", () => ended(child));
    expect(child.signalCode).toBe("SIGINT");
  });

  it("kills it when it does not stop in time", async () => {
    const data = folder();
    const child = await server(data, 'process.on("SIGINT", () => {});');
    await kill(await owner(child.pid ?? 0, data));
    await until("its end", () => ended(child), 50_000);
    expect(child.signalCode).toBe("SIGKILL");
  });

  it("leaves a process alone that does not run on this data", async () => {
    const [mine, other] = [await server(folder()), await server(folder())];
    const data = folder();
    const guarded = await server(data);
    await kill(await owner(other.pid ?? 0, data));
    await kill(await owner(guarded.pid ?? 0, data));
    await until("the end of the guarded one", () => ended(guarded));
    expect([ended(mine), ended(other)]).toEqual([false, false]);
  });

  it("exits once it is dismissed, and the server continues", async () => {
    const data = folder();
    const child = await server(data);
    const pid = child.pid ?? 0;
    const guard = guardServer({ pid, data }, null);
    await until("the guard", () => guardsOf(pid).length === 1);
    guard.dismiss();
    await until("the end of the guard", () => guardsOf(pid).length === 0);
    expect(ended(child)).toBe(false);
  });
});
