/**
 * What a command is: one record, one file each. A command gets its arguments and an `Io`, and
 * answers with an exit code: 0 done, 1 the answer is no, 2 wrong usage. It never calls
 * `process.exit`; a fault of what the user set up is thrown as a SetupError, a wrong use as a
 * UsageError, and `run.ts` turns both into words and a code.
 */

import type { ParseArgsConfig } from "node:util";
import type { Clock } from "../core/clock.ts";

/** The world around a command, so that tests can stand in for it. */
export interface Io {
  /** A line to standard output. */
  out(line: string): void;
  /** A line to standard error. */
  err(line: string): void;
  readStdin(): Promise<Uint8Array>;
  readonly clock: Clock;
  readonly signals: SignalSource;
}

/** The part of `process` that signals come from. */
export interface SignalSource {
  on(signal: Signal, act: () => void): unknown;
  off(signal: Signal, act: () => void): unknown;
}

export type Signal = "SIGTERM" | "SIGINT" | "SIGHUP";

export type ExitCode = 0 | 1 | 2;

/** The options of a command line by name; one that was not given is absent. */
export type Given = Readonly<Record<string, string | boolean | undefined>>;

export interface Command {
  readonly name: string;
  /** One sentence, small first letter, without a full stop. */
  readonly summary: string;
  /** The forms of its command line, without the program's name. */
  readonly usage: readonly string[];
  /** For `node:util` parseArgs; `--help` is added to all. */
  readonly options: NonNullable<ParseArgsConfig["options"]>;
  /** What `--help` says below the usage; fits a screen. */
  readonly detail: string;
  /** Whether it runs until a signal ends it. */
  readonly isService?: true;
  run(given: Given, positionals: readonly string[], io: Io): Promise<ExitCode>;
}

/** The command line asks for something that the command does not take; exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The text of an option; a UsageError without it. */
export function requiredText(given: Given, name: string): string {
  const text = optionalText(given, name);
  if (text === null) throw new UsageError(`--${name} is missing`);
  return text;
}

/** The text of an option; null when it was not given. */
export function optionalText(given: Given, name: string): string | null {
  const value = given[name];
  if (value === "") throw new UsageError(`--${name} is empty`);
  return typeof value === "string" ? value : null;
}

/** For commands that take options alone, and for what follows the last word that was expected. */
export function noPositionals(positionals: readonly string[]): void {
  const [first] = positionals;
  if (first !== undefined) throw new UsageError(`one word too many: ${JSON.stringify(first)}`);
}
