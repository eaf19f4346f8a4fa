/**
 * Selects a command, parses its options and turns the result into messages and an exit code.
 * Results go to standard output, all errors to standard error.
 */

import { parseArgs } from "node:util";
import { SetupError } from "../core/errors.ts";
import { VERSION } from "../runtime/version.ts";
import { type Command, type ExitCode, type Io, UsageError } from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { didYouMean } from "./nearest.ts";
import { endedLine } from "./node-lines.ts";

const HELP_WORDS: readonly string[] = ["--help", "-h", "help"];
const VERSION_WORDS: readonly string[] = ["--version", "-v", "-V", "version"];

/** Runs `touchdown ARGS`; never rejects. */
export async function run(args: readonly string[], io: Io): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === undefined) {
    io.err(overview());
    return 2;
  }
  if (HELP_WORDS.includes(name)) {
    io.out(overview());
    return 0;
  }
  if (VERSION_WORDS.includes(name)) {
    io.out(`touchdown ${VERSION}`);
    return 0;
  }
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (command === undefined) {
    const words = [...COMMANDS.map((known) => known.name), ...HELP_WORDS, ...VERSION_WORDS];
    const message = `there is no command ${JSON.stringify(name)}${didYouMean(name, words)}`;
    io.err(`touchdown: ${message}\n\n${overview()}`);
    return 2;
  }
  return await runCommand(command, rest, io);
}

async function runCommand(command: Command, args: string[], io: Io): Promise<ExitCode> {
  try {
    const { values, positionals } = parse(command, args);
    if (values["help"] === true) {
      io.out(helpOf(command));
      return 0;
    }
    if (command.warnsOfEndedNode === true) warnOfEndedLine(command, io);
    return await command.run(values, positionals, io);
  } catch (error) {
    if (error instanceof UsageError) {
      io.err(`touchdown ${command.name}: ${error.message}\n\n${usageOf(command)}`);
      return 2;
    }
    if (error instanceof SetupError) {
      io.err(`touchdown ${command.name}: ${error.message}`);
      return 1;
    }
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    io.err(`touchdown ${command.name}: this is a bug in touchdown\n${stack}`);
    return 1;
  }
}

function warnOfEndedLine(command: Command, io: Io): void {
  const warning = endedLine(process.versions.node, io.clock.unixMs());
  if (warning !== null) io.err(`touchdown ${command.name}: ${warning}`);
}

interface ParsedLine {
  readonly values: Record<string, string | boolean>;
  readonly positionals: readonly string[];
}

function parse(command: Command, args: string[]): ParsedLine {
  const options = { ...command.options, help: { type: "boolean", short: "h" } } as const;
  refuseUnknownAndTwice(args, options);
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const given: Record<string, string | boolean> = {};
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === "string" || typeof value === "boolean") given[name] = value;
    }
    return { values: given, positionals };
  } catch (error) {
    // parseArgs throws only TypeErrors; its first sentence names the option, the rest is advice.
    if (!(error instanceof TypeError)) throw error;
    const [message = "wrong options"] = error.message.split(". ", 1);
    throw new UsageError(message);
  }
}

/** Names an option without its value, which may be a key. */
function refuseUnknownAndTwice(args: string[], options: Command["options"]): void {
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true });
  const given = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName } = token;
    if (!Object.hasOwn(options, name)) {
      const names = Object.keys(options).map((known) => `--${known}`);
      throw new UsageError(`unknown option ${rawName}${didYouMean(rawName, names)}`);
    }
    if (given.has(name)) throw new UsageError(`--${name} is given twice`);
    given.add(name);
  }
}

function usageOf(command: Command): string {
  const lines = command.usage.map((form) => `  touchdown ${form}`);
  return ["Usage:", ...lines].join("\n");
}

function helpOf(command: Command): string {
  const title = `touchdown ${command.name}: ${command.summary}`;
  return [title, "", usageOf(command), "", command.detail.replace(/^\n/, "")].join("\n").trimEnd();
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const rows = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    "touchdown: lands signed transactions of the Solana network",
    "",
    "Usage:",
    "  touchdown COMMAND [OPTIONS]",
    "  touchdown COMMAND --help",
    "  touchdown --version | -v | -V",
    "",
    "Commands:",
    ...rows,
    "",
    "Exit codes: 0 done, 1 the answer is no, 2 wrong usage.",
  ].join("\n");
}
