/**
 * The processes of a run: this process starts, watches and always stops them. Their CPU time and
 * memory come from /proc, so the numbers exist on Linux only.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { systemClock } from "../../src/core/clock.ts";

export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  /** The end of its output, for the report of a failure. */
  output(): string;
  /** Stops it with SIGTERM, then with SIGKILL. */
  stop(): Promise<void>;
}

const OUTPUT_CHARS_MAX = 4000;
const STOP_MS = 10_000;
/** Clock ticks a second in /proc; 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** How the image and docs/operations.md start an edge: limits for V8's young space and glibc. */
export const LIKE_THE_IMAGE: readonly string[] = ["--max-semi-space-size=8"];
const IMAGE_VARIABLES = { MALLOC_MMAP_THRESHOLD_: "131072" };

/**
 * Starts a Node process; its output is kept, not shown. `before` is what precedes it on the command
 * line, such as `nice`.
 */
export function startChild(
  args: readonly string[],
  withIpc = false,
  before: readonly string[] = [],
): Child {
  const [command = process.execPath, ...rest] = [...before, process.execPath, ...args];
  const child = spawn(command, rest, {
    env: { ...process.env, ...IMAGE_VARIABLES },
    stdio: withIpc ? ["ignore", "pipe", "pipe", "ipc"] : ["ignore", "pipe", "pipe"],
    serialization: "advanced",
  });
  let output = "";
  const hold = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-OUTPUT_CHARS_MAX);
  };
  child.stdout?.on("data", hold);
  child.stderr?.on("data", hold);
  const pid = child.pid;
  if (pid === undefined) throw new Error(`could not start ${args[0]}`);
  return {
    process: child,
    pid,
    output: () => output,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const over = once(child, "exit");
      child.kill("SIGTERM");
      const last = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await over;
      clearTimeout(last);
    },
  };
}

/** Waits until the URL returns 200; on timeout throws an Error with the child's output. */
export async function untilReady(child: Child, url: string, timeoutMs: number): Promise<void> {
  const deadlineNs = systemClock.nowNs() + timeoutMs * 1e6;
  let last = "no response";
  while (systemClock.nowNs() < deadlineNs) {
    if (child.process.exitCode !== null) break;
    try {
      const response = await fetch(url);
      last = await response.text();
      if (response.status === 200) return;
    } catch {
      // Not listening yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not ready: ${last}\n${child.output()}`);
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

/** CPU time used by all threads of the process, in microseconds; null where unknown. */
export function cpuUs(pid: number): number | null {
  const text = readProc(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The second field is a name in parentheses, which may contain spaces; 14 and 15 are the times.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return (ticks * 1e6) / TICKS_PER_SECOND;
}

/** Resident memory in megabytes; null where unknown. */
export function rssMb(pid: number): number | null {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`) ?? "")?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) / 1000;
}

function readProc(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // Not Linux, or the process has ended.
    return null;
  }
}
