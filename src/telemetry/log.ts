/**
 * The log: one JSON object per line, without keys, whatever a caller passes.
 *
 * `redact.ts` processes every field and message before pino does, and then the finished line, so
 * that a secret in an unexpected place is removed too. Writing is synchronous: lines are rare, and
 * the last ones before an exit matter most.
 */

import pino from "pino";
import type { Log } from "../core/log.ts";
import { redactFields, redactLine, redactText } from "./redact.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export interface LogOptions {
  /** The lowest level that is written. */
  readonly level: LogLevel;
  /** Fields of every line, such as the region. */
  readonly base?: Readonly<Record<string, string>>;
  /** Output: a file descriptor (default 1), or an object that takes complete lines. */
  readonly destination?: 1 | 2 | { write(line: string): void };
}

/** The process's log. `debug` is for operators and off by default. */
export function createLog(options: LogOptions): Log & { debug: Log["info"] } {
  const destination = options.destination ?? 1;
  const out = typeof destination === "number" ? standardStream(destination) : destination;
  const logger = pino(
    {
      level: options.level,
      base: { ...options.base },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => out.write(redactLine(line)) },
  );
  return {
    debug: (fields, message) => logger.debug(redactFields(fields), redactText(message)),
    info: (fields, message) => logger.info(redactFields(fields), redactText(message)),
    warn: (fields, message) => logger.warn(redactFields(fields), redactText(message)),
    error: (fields, message) => logger.error(redactFields(fields), redactText(message)),
  };
}

function standardStream(fd: 1 | 2): { write(line: string): void } {
  const stream = pino.destination({ fd, sync: true });
  // A closed pipe (`touchdown edge | head`) must not end the process.
  stream.on("error", () => undefined);
  return { write: (line) => void stream.write(line) };
}
