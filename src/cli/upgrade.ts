/**
 * `upgrade`: has the running edge of a configuration start its successor, the version that is on
 * disk now, waits for the hand-over and for the end of the old process, and prints the result. The
 * process is found, and its progress read, on its admin listener.
 */

import { realpathSync } from "node:fs";
import { constants } from "node:os";
import { resolve } from "node:path";
import { loadConfig, serviceOf } from "../config/load.ts";
import { type Clock, until, withTimeout } from "../core/clock.ts";
import { codeOf, SetupError } from "../core/errors.ts";
import {
  catchesSignal,
  isAlive,
  ownIdentity,
  type ProcessIdentity,
  parseIdentity,
} from "../runtime/process-identity.ts";
import { type Command, noPositionals, requiredText } from "./command.ts";
import {
  READY_PROBE_MS_MAX,
  RETIRING_MS_MAX,
  STOP_MS_MAX,
  UPGRADE_LOOK_MS,
  UPGRADE_SPARE_MS,
} from "./limits.ts";
import { adminUrl } from "./ready.ts";

export const upgradeCommand: Command = {
  name: "upgrade",
  summary: "replaces the running edge by the version on disk, without a refused request",
  usage: ["upgrade --config FILE"],
  options: { config: { type: "string" } },
  detail: `
Finds the running edge by admin.listen and sends it SIGUSR2. It starts its successor, with
the same arguments; once that is ready, it takes over the port, and the old process finishes
its work. Exits with 0 when the old process has ended.

If the successor is not ready within http.upgrade_timeout, the old process goes on as before,
and the exit code is 1. Must run as the user of the edge, or as root.
`,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const file = requiredText(given, "config");
    if (serviceOf(file) === "control") {
      throw new SetupError(`${file} is the control process's; only an edge can be upgraded`);
    }
    const { admin, http } = loadConfig(file);
    const url = adminUrl(admin.listen, "/upgrade");
    const before = await progressAt(url, io.clock);
    if (before === null) {
      throw new SetupError(
        `no edge answers at ${url}; after a change of admin.listen send the edge SIGUSR2 yourself`,
      );
    }
    requireFile(before, file, url);
    if (before.state === "starting") {
      io.err("an upgrade is on its way, with the configuration as it was when that began");
    } else {
      signal(before.process);
    }
    const waitMs = before.timeoutMs ?? http.upgradeTimeoutMs;
    const switched = await untilReplaced(before, url, io.clock, waitMs);
    if (switched.kind === "failed") {
      io.err(`not upgraded: ${switched.reason}`);
      return 1;
    }
    const { successor } = switched;
    io.out(`process ${successor.pid} serves, process ${before.process.pid} finishes its work`);
    const timeoutMs = RETIRING_MS_MAX + STOP_MS_MAX + UPGRADE_SPARE_MS;
    const wait = { timeoutMs, periodMs: UPGRADE_LOOK_MS };
    let isLost = false;
    const isOver = await until(io.clock, wait, async () => {
      if (!isAlive(before.process)) return true;
      // It may have been replaced in turn.
      isLost = !isAlive(successor) && (await progressAt(url, io.clock)) === null;
      return isLost;
    });
    if (isLost) {
      // systemd restarts the service when its reload, this command, is over.
      io.err(`process ${successor.pid} has ended, and none serves in its place`);
      return 1;
    }
    if (isOver) {
      io.out(`upgraded: process ${before.process.pid} has ended`);
      return 0;
    }
    io.err(`process ${before.process.pid} has not ended within ${timeoutMs} ms`);
    return 1;
  },
};

interface Progress {
  readonly process: ProcessIdentity;
  /** The path of its configuration; null: its version does not say. */
  readonly config: string | null;
  /** Its `http.upgrade_timeout`; null: its version does not say. */
  readonly timeoutMs: number | null;
  readonly attempt: number;
  readonly state: string;
  readonly reason: string | null;
}

type Switched =
  | { readonly kind: "replaced"; readonly successor: ProcessIdentity }
  | { readonly kind: "failed"; readonly reason: string };

/** @throws SetupError when the process has another configuration, which its successor would read */
function requireFile({ config }: Progress, file: string, url: string): void {
  if (config === null || realPathOf(config) === realPathOf(file)) return;
  throw new SetupError(`the edge that answers at ${url} runs with ${config}, not with ${file}`);
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // It is gone, or belongs to a folder that this user cannot search.
    return resolve(path);
  }
}

/** @throws SetupError when the process cannot be told */
function signal({ pid, namespace }: ProcessIdentity): void {
  const own = parseIdentity(ownIdentity());
  if (namespace !== own?.namespace) {
    throw new SetupError(
      "the edge runs in another PID namespace, that of a container: run this command there",
    );
  }
  // It would end a process without a handler, and any local process may answer where no edge does.
  if (!catchesSignal(pid, constants.signals.SIGUSR2)) {
    throw new SetupError(`process ${pid} does not expect SIGUSR2: it is no edge, or still starts`);
  }
  try {
    process.kill(pid, "SIGUSR2");
  } catch (error) {
    throw new SetupError(`process ${pid} cannot be sent SIGUSR2 (${codeOf(error)})`);
  }
}

async function untilReplaced(
  before: Progress,
  url: string,
  clock: Clock,
  timeoutMs: number,
): Promise<Switched> {
  const { pid } = before.process;
  const attempt = before.state === "starting" ? before.attempt : before.attempt + 1;
  let result: Switched | null = null;
  const wait = { timeoutMs: timeoutMs + UPGRADE_SPARE_MS, periodMs: UPGRADE_LOOK_MS };
  await until(clock, wait, async () => {
    const now = await progressAt(url, clock);
    if (now !== null && now.process.pid !== pid) {
      result = { kind: "replaced", successor: now.process };
    } else if (now !== null && now.attempt >= attempt && now.state === "failed") {
      result = { kind: "failed", reason: now.reason ?? "the reason is unknown" };
    } else if (!isAlive(before.process)) {
      result = { kind: "failed", reason: `process ${pid} has ended, and none serves in its place` };
    }
    return result !== null;
  });
  return result ?? { kind: "failed", reason: `process ${pid} reports no end of the attempt` };
}

/** What the process says that has the admin listener now; null while none has it. */
async function progressAt(url: string, clock: Clock): Promise<Progress | null> {
  try {
    return await withTimeout(clock, READY_PROBE_MS_MAX, async (signal) => {
      const response = await fetch(url, { signal, headers: { connection: "close" } });
      return progressOf(await response.json());
    });
  } catch {
    // For a moment neither process has the admin listener open.
    return null;
  }
}

function progressOf(answer: unknown): Progress | null {
  if (typeof answer !== "object" || answer === null || !("process" in answer)) return null;
  const process = parseIdentity(JSON.stringify(answer.process));
  if (process === null) return null;
  const upgrade: object = "upgrade" in answer && answer.upgrade ? answer.upgrade : {};
  return {
    process,
    config: "config" in answer ? String(answer.config) : null,
    timeoutMs: "timeoutMs" in answer ? Number(answer.timeoutMs) : null,
    attempt: "attempt" in upgrade ? Number(upgrade.attempt) : 0,
    state: "state" in upgrade ? String(upgrade.state) : "idle",
    reason: "reason" in upgrade && typeof upgrade.reason === "string" ? upgrade.reason : null,
  };
}
