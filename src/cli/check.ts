/**
 * `check`: prints the effective configuration, or all of its problems. For an edge it then does
 * what `edge` does before it starts anything (`src/edge/preflight.ts`), so it fails where `edge`
 * would.
 */

import type { Config } from "../config/config.ts";
import { describeEffective, describeKeys } from "../config/describe.ts";
import { describeProblems, readConfig, readControl, serviceOf } from "../config/load.ts";
import type { Resolved } from "../config/resolve.ts";
import type { ListenAddress } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { requireOpenFiles } from "../edge/open-file-limit.ts";
import { type Command, type Io, noPositionals, requiredText } from "./command.ts";
import { READY_PROBE_MS_MAX } from "./limits.ts";
import { adminUrl } from "./ready.ts";

export const checkCommand: Command = {
  name: "check",
  summary: "prints the effective configuration with secrets hidden, or every problem in one run",
  usage: ["check --config FILE"],
  options: { config: { type: "string" } },
  detail: `
Exits with 1 wherever \`edge\` would not start on this machine: for a value, a file that cannot be
read, an address that cannot be bound, a missing engine or permission, too few open files. What
the running edge of this configuration uses itself, its ports and its journal, is no problem.
What an edge would warn of is printed and is no problem.
A file with a table [control] is checked as the control process's, any other as an edge's. Each
key can be overridden by an environment variable: http.listen by TOUCHDOWN_HTTP_LISTEN. The
sections and their keys; docs/configuration.md says what each means:

${describeKeys()}
`,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const file = requiredText(given, "config");
    if (serviceOf(file) === "control") return told(readControl(file), file, io) ? 0 : 1;
    const resolved = readConfig(file);
    if (!told(resolved, file, io)) return 1;
    return (await startsHere(resolved.config, file, io)) ? 0 : 1;
  },
};

/** Prints what keeps an edge from starting here; returns whether nothing does. */
async function startsHere(config: Config, file: string, io: Io): Promise<boolean> {
  requireOpenFiles();
  const { preflight } = await import("../edge/preflight.ts");
  const { problems, inUse, warnings } = await preflight(config);
  for (const message of warnings) {
    io.err(`${file}: an edge on this machine would warn: ${message}`);
  }
  for (const message of problems) {
    io.err(`${file}: an edge on this machine would not start: ${message}`);
  }
  if (inUse.length === 0) return problems.length === 0;
  // The usual case of a check: the edge of this configuration runs, and is to be restarted.
  const runs = await isEdgeServing(config.admin.listen, io.clock);
  for (const message of inUse) {
    io.err(
      runs
        ? `${file}: the edge that runs now uses this: ${message}`
        : `${file}: an edge on this machine would not start: ${message}`,
    );
  }
  return problems.length === 0 && runs;
}

/** Whether an edge answers at that admin listener. */
async function isEdgeServing(listen: ListenAddress, clock: Clock): Promise<boolean> {
  if (listen.port === 0) return false;
  const abort = new AbortController();
  const timer = clock.after(READY_PROBE_MS_MAX, () => abort.abort());
  try {
    const url = adminUrl(listen, "/metrics");
    const response = await fetch(url, { signal: abort.signal });
    return (await response.text()).includes("touchdown_build_info{");
  } catch {
    // Whatever does not answer as an edge is none.
    return false;
  } finally {
    timer.cancel();
  }
}

/** Prints the configuration or its problems; returns whether it is valid. */
function told<C>(resolved: Resolved<C>, file: string, io: Io): resolved is Sound<C> {
  if (resolved.kind === "ok") io.out(describeEffective(resolved.shown));
  else io.err(describeProblems(file, resolved.problems));
  return resolved.kind === "ok";
}

type Sound<C> = Extract<Resolved<C>, { readonly kind: "ok" }>;
