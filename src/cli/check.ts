/**
 * `check`: prints the effective configuration, or all of its problems. For an edge it then does
 * what `edge` does before it starts anything (`src/edge/preflight.ts`), so it fails where `edge`
 * would. For the control process it tries the listeners and the files; whether the database answers
 * is left to `doctor`.
 */

import { existsSync } from "node:fs";
import type { Config, ControlConfig } from "../config/config.ts";
import { describeEffective, describeKeys } from "../config/describe.ts";
import { edgeName } from "../config/edge-name.ts";
import { describeProblems, readConfig, readControl, serviceOf } from "../config/load.ts";
import { controlPortsOf, portsOf } from "../config/ports.ts";
import type { Resolved } from "../config/resolve.ts";
import type { ListenAddress } from "../config/value-types.ts";
import { type Clock, withTimeout } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import { requireOpenFiles } from "../edge/open-file-limit.ts";
import type { Preflight } from "../edge/preflight.ts";
import { type Command, type Io, noPositionals, requiredText } from "./command.ts";
import { READY_PROBE_MS_MAX } from "./limits.ts";
import { adminUrl } from "./ready.ts";

export const checkCommand: Command = {
  name: "check",
  summary: "prints the effective configuration with secrets hidden, or every problem in one run",
  usage: ["check --config FILE"],
  options: { config: { type: "string" } },
  detail: `
Exits with 1 wherever \`edge\`, or \`control\`, would not start on this machine: for a value, a
file that cannot be read, an address that cannot be bound, a missing engine or permission, too
few open files. What the running process of this configuration uses itself, its ports and its
journal, is no problem. What an edge would warn of is printed and is no problem.
A file with a table [control] is checked as the control process's, any other as an edge's. Each
key can be overridden by an environment variable: http.listen by TOUCHDOWN_HTTP_LISTEN. The
sections and their keys; docs/configuration.md says what each means:

${describeKeys()}
`,
  warnsOfEndedNode: true,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const file = requiredText(given, "config");
    if (serviceOf(file) === "control") {
      const resolved = readControl(file);
      print(resolved, file, io);
      if (resolved.kind !== "ok") return 1;
      const { config } = resolved;
      const found = await controlPreflight(config);
      return (await startsHere(controlOf(config), found, config.admin.listen, file, io)) ? 0 : 1;
    }
    const resolved = readConfig(file);
    print(resolved, file, io);
    if (resolved.kind !== "ok") return 1;
    requireOpenFiles();
    const { preflight } = await import("../edge/preflight.ts");
    const { config } = resolved;
    const found = await preflight(config);
    return (await startsHere(edgeOf(config), found, config.admin.listen, file, io)) ? 0 : 1;
  },
};

/** A service, and how it is recognized on its admin listener. */
export interface Subject {
  readonly one: string;
  readonly running: string;
  /** The path that is asked. */
  readonly path: string;
  readonly name: string;
  /** Its ports, by the keys with which messages begin. */
  readonly ports: Readonly<Record<string, readonly string[]>>;
  /** The service that gave this answer; null: it is none. */
  runningIn(answer: string): Running | null;
}

interface Running {
  readonly name: string;
  /** The ports that it uses; null: it does not say. */
  readonly ports: readonly string[] | null;
}

function controlOf(config: ControlConfig): Subject {
  return {
    one: "a control process",
    running: "the control process",
    path: "/readyz",
    name: "control",
    ports: controlPortsOf(config),
    runningIn(answer) {
      const { service, ports, checks } = JSON.parse(answer) as {
        readonly service?: string;
        readonly ports?: readonly string[];
        readonly checks?: readonly { readonly name: string }[];
      };
      // Versions up to 0.1.0 say neither; only this service has that check.
      const isOlder = service === undefined && checks?.some(({ name }) => name === "provider");
      return service === "control" || isOlder ? { name: "control", ports: ports ?? null } : null;
    },
  };
}

export function edgeOf(config: Config): Subject {
  const own = `edge ${edgeName(config)} of region ${config.region}`;
  return {
    one: "an edge",
    running: "the edge",
    path: "/upgrade",
    name: own,
    ports: portsOf(config),
    runningIn(answer) {
      const { process, edge, ports } = JSON.parse(answer) as {
        readonly process?: unknown;
        readonly edge?: { readonly region: string; readonly name: string };
        readonly ports?: readonly string[];
      };
      if (process === undefined) return null;
      // Versions up to 0.1.0 say neither which edge they are nor which ports they use.
      const name = edge === undefined ? own : `edge ${edge.name} of region ${edge.region}`;
      return { name, ports: ports ?? null };
    },
  };
}

/** What keeps the control process from starting here, apart from what it asks others. */
async function controlPreflight(config: ControlConfig): Promise<Preflight> {
  const problems: string[] = [];
  const attempt = (step: () => unknown): void => {
    try {
      step();
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      problems.push(error.message);
    }
  };
  const { tryListen } = await import("../edge/preflight.ts");
  const { openVault } = await import("../control/vault.ts");
  const { requireConnectable } = await import("../accounts/database/database.ts");
  const { databaseUrl, ownerUrl, vaultFile, listen, admin } = config;
  // A missing file is made at the first start.
  if (existsSync(vaultFile)) attempt(() => openVault(vaultFile));
  attempt(() => requireConnectable("accounts.database_url", databaseUrl));
  if (ownerUrl !== null) attempt(() => requireConnectable("control.owner_url", ownerUrl));
  const inUse: string[] = [];
  const bound = await tryListen({ "control.listen": listen, "admin.listen": admin.listen });
  for (const { isInUse, message } of bound) (isInUse ? inUse : problems).push(message);
  const { exposureWarnings } = await import("../config/exposure.ts");
  return { problems, inUse, warnings: exposureWarnings(admin.listen) };
}

/** Prints what keeps a service from starting here; returns whether nothing does. */
async function startsHere(
  subject: Subject,
  { problems, inUse, warnings }: Preflight,
  adminListen: ListenAddress,
  file: string,
  io: Io,
): Promise<boolean> {
  const { one, running } = subject;
  for (const message of warnings) {
    io.err(`${file}: ${one} on this machine would warn: ${message}`);
  }
  for (const message of problems) {
    io.err(`${file}: ${one} on this machine would not start: ${message}`);
  }
  const { own, foreign, other } = await usersOf(subject, inUse, adminListen, io.clock);
  for (const message of own) io.err(`${file}: ${running} that runs now uses this: ${message}`);
  for (const message of foreign) {
    io.err(`${file}: ${one} on this machine would not start: ${message}${other}`);
  }
  return problems.length === 0 && foreign.length === 0;
}

/**
 * Divides what is in use into what the running service of this configuration uses, which is the
 * usual case because it is to be restarted, and what others do. `other` names another service that
 * answers in its place.
 */
export async function usersOf(
  subject: Subject,
  inUse: readonly string[],
  adminListen: ListenAddress,
  clock: Clock,
) {
  if (inUse.length === 0) return { own: [], foreign: [], other: "" };
  const found = await serviceAt(adminListen, subject, clock);
  const isOwn = found?.name === subject.name;
  const isUsed = (message: string): boolean => {
    const [key = ""] = message.split(":", 1);
    const ports = subject.ports[key] ?? [];
    return isOwn && ports.every((port) => found.ports?.includes(port) ?? true);
  };
  const other = found === null || isOwn ? "" : ` (${found.name} answers at admin.listen)`;
  const foreign = inUse.filter((message) => !isUsed(message));
  return { own: inUse.filter(isUsed), foreign, other };
}

/** The service that answers at the admin listener; null: none does. */
async function serviceAt(
  listen: ListenAddress,
  { path, runningIn }: Subject,
  clock: Clock,
): Promise<Running | null> {
  if (listen.port === 0) return null;
  try {
    return await withTimeout(clock, READY_PROBE_MS_MAX, async (signal) => {
      const response = await fetch(adminUrl(listen, path), { signal });
      return runningIn(await response.text());
    });
  } catch {
    // Whatever does not answer as one is none.
    return null;
  }
}

/** Prints the configuration or its problems. */
function print(resolved: Resolved<unknown>, file: string, io: Io): void {
  if (resolved.kind === "ok") io.out(describeEffective(resolved.shown));
  else io.err(describeProblems(file, resolved.problems));
}
