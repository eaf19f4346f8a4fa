/**
 * `check`: prints the effective configuration, or all of its problems. What is valid but cannot
 * start with this version, or with the files of this machine, goes to standard error too, so that
 * the next step does not fail unexpectedly. It does not fail the check, because the configuration
 * may be another machine's.
 */

import { unavailable } from "../config/available.ts";
import type { Config } from "../config/config.ts";
import { describeEffective, describeKeys } from "../config/describe.ts";
import { describeProblems, readConfig, readControl, serviceOf } from "../config/load.ts";
import type { Resolved } from "../config/resolve.ts";
import { SetupError } from "../core/errors.ts";
import { type Command, type Io, noPositionals, requiredText } from "./command.ts";

export const checkCommand: Command = {
  name: "check",
  summary: "prints the effective configuration with secrets hidden, or every problem in one run",
  usage: ["check --config FILE"],
  options: { config: { type: "string" } },
  detail: `
Exits with 1 when there is a problem. What an edge could not read on this machine, its
identity, its keys or its engine, is reported and is no problem, as is what it would warn of:
the configuration may be another machine's.
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
    for (const message of unavailable(resolved.config)) {
      io.err(`${file}: an edge of this version would refuse to start: ${message}`);
    }
    const { refusals, warnings } = await startedHere(resolved.config);
    for (const message of refusals) {
      io.err(`${file}: an edge on this machine would refuse to start: ${message}`);
    }
    for (const message of warnings) {
      io.err(`${file}: an edge on this machine would warn: ${message}`);
    }
    return 0;
  },
};

/** What an edge that starts here would report about its files and its engine, one sentence each. */
async function startedHere({ accounts, identity, send }: Config) {
  const { readIdentity } = await import("../edge/identity.ts");
  const { loadKeys } = await import("../edge/keys.ts");
  const { chooseEngine } = await import("../native/choose.ts");
  const { keysFile } = accounts;
  const warnings: string[] = [];
  const warn = (_: object, message: string): void => void warnings.push(message);
  const steps = [
    () => readIdentity(identity.keypair),
    () => (keysFile === null ? null : loadKeys(keysFile)),
    () => chooseEngine(send.engine, { info() {}, warn, error() {} }),
  ];
  const refusals = steps.flatMap((step) => {
    try {
      step();
      return [];
    } catch (error) {
      if (error instanceof SetupError) return [error.message];
      throw error;
    }
  });
  return { refusals, warnings };
}

/** Prints the configuration or its problems; returns whether it is valid. */
function told<C>(resolved: Resolved<C>, file: string, io: Io): resolved is Sound<C> {
  if (resolved.kind === "ok") io.out(describeEffective(resolved.shown));
  else io.err(describeProblems(file, resolved.problems));
  return resolved.kind === "ok";
}

type Sound<C> = Extract<Resolved<C>, { readonly kind: "ok" }>;
