/**
 * Defines a command: one record, one file each. A command receives its arguments and an `Io` and
 * returns an exit code: 0 done, 1 failed or negative, 2 wrong usage. It never calls `process.exit`;
 * an error in the user's setup is thrown as a SetupError, wrong usage as a UsageError, and `run.ts`
 * turns both into a message and a code.
 */

import type { ParseArgsConfig } from "node:util";
import type { Clock } from "../core/clock.ts";

/** A command's environment, which tests can replace. */
export interface Io {
  /** Writes a line to standard output. */
  out(line: string): void;
  /** Writes a line to standard error. */
  err(line: string): void;
  readStdin(): Promise<Uint8Array>;
  /** The next line of standard input without its end; null at the end. */
  readLine(): Promise<string | null>;
  /** Whether a person reads standard error, so that progress is of use. */
  readonly isTerminal: boolean;
  readonly clock: Clock;
  readonly signals: SignalSource;
}

/** The part of `process` that emits signals. */
export interface SignalSource {
  on(signal: Signal, act: () => void): unknown;
  off(signal: Signal, act: () => void): unknown;
}

export type Signal = "SIGTERM" | "SIGINT" | "SIGHUP" | "SIGUSR2";

export type ExitCode = 0 | 1 | 2;

/** The options of a command line by name; absent if not given. */
export type Given = Readonly<Record<string, string | boolean | undefined>>;

export interface Command {
  readonly name: string;
  /** One sentence, lower-case first letter, no full stop. */
  readonly summary: string;
  /** The forms of its command line, without the program's name. */
  readonly usage: readonly string[];
  /** For `node:util` parseArgs; every command also gets `--help`. */
  readonly options: NonNullable<ParseArgsConfig["options"]>;
  /** The text of `--help` below the usage; fits a screen. */
  readonly detail: string;
  /** Whether it warns of a Node version that has no security fixes any more. */
  readonly warnsOfEndedNode?: true;
  run(given: Given, positionals: readonly string[], io: Io): Promise<ExitCode>;
}

/** The command line contains something that the command does not accept; exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The text of an option; throws a UsageError without it. */
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

/** For commands that accept only options, and for surplus arguments. */
export function noPositionals(positionals: readonly string[]): void {
  const [first] = positionals;
  if (first !== undefined) throw new UsageError(`one word too many: ${JSON.stringify(first)}`);
}
