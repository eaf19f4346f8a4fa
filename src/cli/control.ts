/**
 * `control`: the dashboard and its accounts, until a signal ends it. Migrates the database, opens
 * the store and starts `src/control/control.ts`, which is imported lazily so that the other
 * commands start without its libraries.
 */

import { DatabaseError } from "../accounts/database/database-error.ts";
import type { ControlConfig } from "../config/config.ts";
import { loadControl } from "../config/load.ts";
import type { OpenStore } from "../control/store/open.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { VERSION } from "../runtime/version.ts";
import { type Command, noPositionals, requiredText } from "./command.ts";
import { untilStopped } from "./signals.ts";
import { systemdOfProcess, toldToSystemd } from "./systemd.ts";

export const controlCommand: Command = {
  name: "control",
  summary: "runs the dashboard and the accounts behind it",
  usage: ["control --config FILE"],
  options: { config: { type: "string" } },
  detail: `
SIGTERM or SIGINT drains: /readyz turns 503, requests are answered for control.drain_grace,
open ones are finished, exit 0. A second signal stops immediately.

\`touchdown check --config FILE\` reports what the file lacks; it checks a file with a table
[control] as this command's.
`,
  warnsOfEndedNode: true,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const config = loadControl(requiredText(given, "config"));
    const { createLog } = await import("../telemetry/log.ts");
    const log = createLog({ level: config.log.level });
    const opened = await openedStore(config, { clock: io.clock, log });
    try {
      const { startControl } = await import("../control/control.ts");
      const { store } = opened;
      const control = await startControl(config, { store, log, version: VERSION });
      const systemd = systemdOfProcess(io);
      const stopped = untilStopped({
        io,
        service: toldToSystemd(control, systemd),
        graceMs: config.drainGraceMs,
        reload: null,
      });
      systemd.ready(`dashboard on ${control.address}`);
      io.err(`control: dashboard on ${control.address}, admin on ${control.adminAddress}`);
      return await stopped;
    } finally {
      await opened.stop();
    }
  },
};

/** @throws SetupError when the database is unusable and waiting would not help */
async function openedStore(
  config: ControlConfig,
  deps: { readonly clock: Clock; readonly log: Log },
): Promise<OpenStore> {
  const { openStore } = await import("../control/store/open.ts");
  try {
    return await openStore(deps, { ...config, environment: "live" });
  } catch (cause) {
    if (!(cause instanceof DatabaseError)) throw cause;
    const keys = config.ownerUrl === null ? "" : " or control.owner_url";
    throw new SetupError(`accounts.database_url${keys}: ${cause.message}`, { cause });
  }
}
