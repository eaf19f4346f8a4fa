/**
 * Removes secrets from log data.
 *
 * Two filters, because a key may be any visible ASCII: fields with a secret's name always lose
 * their value, and text that looks like one of our keys, a password in a URL or a provider's key in
 * a query string is removed anywhere. The functions copy and never change their input, follow no
 * cycle, and bound depth and breadth.
 */

import { LOG_DEPTH_MAX, LOG_ENTRIES_MAX, LOG_TEXT_CHARS_MAX } from "./limits.ts";

/** Replaces a secret. */
export const HIDDEN = "[hidden]";

/** Field names that hold a secret, in lower case and without separators. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  "apikey",
  "apixtoken",
  "authorization",
  "cookie",
  "key",
  "password",
  "privatekey",
  "secret",
  "secretkey",
  "setcookie",
  "token",
  "xapikey",
  "xtoken",
]);

const KEY_TEXT = /td_[A-Za-z0-9_-]{16,}/g;
const URL_PASSWORD = /(:\/\/[^\s/:@"]*):[^\s/@"]+@/g;
const QUERY_SECRET = /([?&](?:api[-_]?key|key|token|secret|access[-_]?token)=)[^&\s"\\]+/gi;
const HEADER_NAME = /(?:api-x-token|x-api-key|x-token|authorization)["']?\s*[:=]\s*["']?/;
const HEADER_SECRET = new RegExp(`(${HEADER_NAME.source}(?:(?:bearer|basic)\\s+)?)[!-~]+`, "gi");

/** A finished line of JSON without our keys; it stays JSON. */
export function redactLine(line: string): string {
  return line.replace(KEY_TEXT, HIDDEN);
}

/** The text without keys, passwords in URLs, and keys in query strings. */
export function redactText(text: string): string {
  return text
    .replace(KEY_TEXT, HIDDEN)
    .replace(URL_PASSWORD, `$1:${HIDDEN}@`)
    .replace(QUERY_SECRET, `$1${HIDDEN}`)
    .replace(HEADER_SECRET, `$1${HIDDEN}`);
}

/** A copy of `fields` that is safe to log. */
export function redactFields(fields: object): Record<string, unknown> {
  return redactEntries(fields, 0, new Set([fields]));
}

function redactEntries(value: object, depth: number, above: Set<object>): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  let count = 0;
  for (const [name, entry] of Object.entries(value)) {
    if (count === LOG_ENTRIES_MAX) {
      clean["…"] = `${Object.keys(value).length - count} more`;
      break;
    }
    count += 1;
    const secret = SECRET_NAMES.has(name.toLowerCase().replaceAll(/[-_]/g, ""));
    clean[redactText(name)] = secret && entry !== null ? HIDDEN : redact(entry, depth + 1, above);
  }
  return clean;
}

function redact(value: unknown, depth: number, above: Set<object>): unknown {
  if (typeof value === "string") return redactText(shorten(value));
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "function" || typeof value === "symbol") return `[${typeof value}]`;
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (above.has(value)) return "[circular]";
  if (depth > LOG_DEPTH_MAX) return "[deeper]";
  above.add(value);
  const clean = redactObject(value, depth, above);
  above.delete(value);
  return clean;
}

function redactObject(value: object, depth: number, above: Set<object>): unknown {
  if (value instanceof Error) return redactError(value, depth, above);
  if (value instanceof Date) return value.toJSON();
  if (value instanceof URL) return redactText(value.href);
  if (Array.isArray(value)) {
    const clean = value.slice(0, LOG_ENTRIES_MAX).map((entry) => redact(entry, depth + 1, above));
    if (value.length > LOG_ENTRIES_MAX) clean.push(`${value.length - LOG_ENTRIES_MAX} more`);
    return clean;
  }
  if (value instanceof Map || value instanceof Set) return redact([...value], depth, above);
  return redactEntries(value, depth, above);
}

/** An error's own fields, including those that are not enumerable, which JSON omits. */
function redactError(error: Error, depth: number, above: Set<object>): Record<string, unknown> {
  const clean: Record<string, unknown> = {
    type: error.name,
    message: redactText(shorten(error.message)),
    stack: redactText(shorten(error.stack ?? "")),
  };
  if (error.cause !== undefined) clean["cause"] = redact(error.cause, depth + 1, above);
  if (error instanceof AggregateError) clean["errors"] = redact(error.errors, depth + 1, above);
  return { ...redactEntries(error, depth, above), ...clean };
}

/** Cuts long text, and removes a partial key that the cut may have left at the end. */
function shorten(text: string): string {
  if (text.length <= LOG_TEXT_CHARS_MAX) return text;
  const cut = text.slice(0, LOG_TEXT_CHARS_MAX).replace(/\S{1,128}$/, "");
  return `${cut}… (${text.length} characters)`;
}
