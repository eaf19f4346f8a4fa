/**
 * The log: one JSON object a line, with no key in it, whatever a caller passes.
 *
 * Every field and message goes through `scrub.ts` before pino sees it, and the finished line once
 * more, so that a secret in a place nobody thought of is cut out as well. Writing is synchronous:
 * lines are rare here, and the last ones before an exit are the ones that matter.
 */

import pino from "pino";
import type { Log } from "../core/log.ts";
import { redactFields, redactLine, redactText } from "./redact.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export interface LogOptions {
  /** The least that is written. */
  readonly level: LogLevel;
  /** Fields of every line, such as the region. */
  readonly base?: Readonly<Record<string, string>>;
  /** Where lines go: a file descriptor (1 when absent), or something that takes whole lines. */
  readonly destination?: 1 | 2 | { write(line: string): void };
}

/** The process's log. `debug` is for the operator's eyes only and is off by default. */
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
  // A closed pipe (`touchdown edge | head`) must not take the service down.
  stream.on("error", () => undefined);
  return { write: (line) => void stream.write(line) };
}
