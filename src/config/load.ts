/**
 * Reads the configuration file and the environment; the only reader of `process.env`. Returns
 * either a complete, frozen configuration or all problems. Invalid input does not throw, except in
 * the functions that wrap all problems into one SetupError.
 */

import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { codeOf, SetupError } from "../core/errors.ts";
import { parseToml } from "../runtime/toml.ts";
import type { Config, ControlConfig } from "./config.ts";
import { CONFIG_FILE_BYTES_MAX } from "./limits.ts";
import {
  type Problem,
  type Resolved,
  resolveConfig,
  resolveControl,
  type Source,
} from "./resolve.ts";
import { environmentName, type Service } from "./table.ts";

type Environment = Source["environment"];

/** Reads a file and the environment overrides. */
export function readConfig(file: string, environment: Environment = process.env): Resolved {
  return readAs(resolveConfig, file, environment);
}

/** As `readConfig`, for the control process. */
export function readControl(
  file: string,
  environment: Environment = process.env,
): Resolved<ControlConfig> {
  return readAs(resolveControl, file, environment);
}

/** The service that a file configures: the control process if it has a table [control]. */
export function serviceOf(file: string): Service {
  return readTable(file).table?.["control"] === undefined ? "edge" : "control";
}

function readAs<C>(
  resolveAs: (source: Source) => Resolved<C>,
  file: string,
  environment: Environment,
): Resolved<C> {
  const read = readTable(file);
  const resolved = resolveAs({ file: read.table, directory: dirname(resolve(file)), environment });
  if (read.problem === null || resolved.kind === "ok") return resolved;
  return { kind: "problems", problems: [read.problem, ...resolved.problems] };
}

/** As `readConfig`, but throws one SetupError that lists all problems. */
export function loadConfig(file: string, environment: Environment = process.env): Config {
  return orThrow(readConfig(file, environment), file);
}

/** As `readControl`, but throws one SetupError that lists all problems. */
export function loadControl(file: string, environment: Environment = process.env): ControlConfig {
  return orThrow(readControl(file, environment), file);
}

function orThrow<C>(resolved: Resolved<C>, title: string): C {
  if (resolved.kind === "problems") {
    throw new SetupError(describeProblems(title, resolved.problems));
  }
  return resolved.config;
}

/**
 * A configuration from values instead of a file, for the sandbox and tests: structured like the
 * file (`{ http: { listen: "127.0.0.1:0" } }`), with relative paths based on `directory`. Throws
 * one SetupError with every problem.
 */
export function configFromValues(
  values: Readonly<Record<string, unknown>>,
  directory: string,
  environment: Environment = process.env,
): Config {
  return orThrow(resolveConfig({ file: values, directory, environment }), "configuration");
}

/** As `configFromValues`, for the control process. */
export function controlFromValues(
  values: Readonly<Record<string, unknown>>,
  directory: string,
  environment: Environment = process.env,
): ControlConfig {
  return orThrow(resolveControl({ file: values, directory, environment }), "configuration");
}

/**
 * This process's environment without the variables of the keys that begin with one of these texts:
 * for a service that brings what they name itself.
 */
export function environmentWithout(keys: readonly string[]): Environment {
  const left = Object.entries(process.env).filter(
    ([variable]) => !keys.some((key) => variable.startsWith(environmentName(key))),
  );
  return Object.fromEntries(left);
}

/** All problems as one message, one per line. */
export function describeProblems(title: string, problems: readonly Problem[]): string {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  const lines = problems.map(({ key, message }) => `  ${key}: ${message}`);
  return [`${title}: ${count}`, ...lines].join("\n");
}

/**
 * Contents of pipes, such as `check --config <(decrypt edge.toml)`: a pipe can be read once, and
 * some commands read the file twice.
 */
const pipes = new Map<string, string>();

interface ReadTable {
  readonly table: Source["file"];
  readonly problem: Problem | null;
}

function readTable(file: string): ReadTable {
  const failed = (message: string): ReadTable => ({ table: null, problem: { key: file, message } });
  let text: string;
  try {
    const stats = statSync(file);
    if (stats.size > CONFIG_FILE_BYTES_MAX) {
      return failed(`is ${stats.size} bytes, at most ${CONFIG_FILE_BYTES_MAX} are read`);
    }
    text = pipes.get(file) ?? readFileSync(file, "utf8");
    if (!stats.isFile()) pipes.set(file, text);
  } catch (error) {
    return failed(`cannot be read (${codeOf(error) ?? String(error)})`);
  }
  const parsed = parseToml(text);
  return parsed.kind === "ok" ? { table: parsed.value, problem: null } : failed(parsed.message);
}
