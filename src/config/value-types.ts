/**
 * The value kinds of configuration keys: how each is read from TOML or from an environment
 * variable, what is rejected with which message, and how it is formatted. `read` never throws. No
 * message quotes a value that may contain a secret.
 */

import { isIP } from "node:net";
import { resolve } from "node:path";
import { decodeBase58 } from "../core/encoding.ts";
import { formatDuration, parseDuration } from "./durations.ts";

/** Types that TOML or a default can hold for a key. */
export type Raw = string | number | boolean | readonly string[];

export type Reading<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "problem"; readonly message: string };

export interface Kind<T> {
  /** The kind as named in docs/configuration.md. */
  readonly name: string;
  /** Allowed values in words; empty if the name suffices. */
  readonly bounds: string;
  /** `directory` is the base of relative paths. */
  read(raw: unknown, directory: string): Reading<T>;
  /** Converts an environment variable's text to the equivalent TOML value. */
  fromText(text: string): unknown;
  /** The value as TOML, secrets hidden. */
  show(value: T): Raw;
}

/** The address to which a socket is bound. */
export interface ListenAddress {
  /** An IP address without brackets, or a host name. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export const ok = <T>(value: T): Reading<T> => ({ kind: "ok", value });
export const problem = (message: string): Reading<never> => ({ kind: "problem", message });
export const asIs = (text: string): unknown => text;

/** A value as quoted in a message: short, on one line. */
export function quoted(raw: unknown): string {
  const text = Array.isArray(raw) ? "an array" : raw instanceof Date ? "a date" : null;
  if (text !== null) return text;
  if (typeof raw === "object" && raw !== null) return "a table";
  // TOML has infinities and NaN, JSON does not.
  if (typeof raw === "number") return String(raw);
  const json = JSON.stringify(raw) ?? "nothing";
  return json.length <= QUOTED_CHARACTERS_MAX ? json : `${json.slice(0, QUOTED_CHARACTERS_MAX)}…`;
}

/** A short name: letters, digits, `-`, `_` and `.`, as metric labels and host names allow. */
export function name(): Kind<string> {
  return {
    name: "name",
    bounds: "1 to 32 letters, digits, -, _ or .",
    read: (raw) =>
      typeof raw === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/.test(raw)
        ? ok(raw)
        : problem(`must be 1 to 32 letters, digits, "-", "_" or ".", is ${quoted(raw)}`),
    fromText: asIs,
    show: (value) => value,
  };
}

export function integer(min: number, max: number): Kind<number> {
  return {
    name: "integer",
    bounds: `${min} to ${max}`,
    read: (raw) =>
      typeof raw === "number" && Number.isInteger(raw) && raw >= min && raw <= max
        ? ok(raw)
        : problem(`must be an integer from ${min} to ${max}, is ${quoted(raw)}`),
    fromText: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
    show: (value) => value,
  };
}

/** An integer, or the word "auto", which becomes null. */
export function integerOrAuto(min: number, max: number): Kind<number | null> {
  const inner = integer(min, max);
  return {
    name: "integer or auto",
    bounds: `"auto", ${inner.bounds}`,
    read(raw, directory) {
      if (raw === "auto") return ok(null);
      const reading = inner.read(raw, directory);
      if (reading.kind === "ok") return reading;
      return problem(`must be "auto" or an integer from ${min} to ${max}, is ${quoted(raw)}`);
    },
    fromText: inner.fromText,
    show: (value) => value ?? "auto",
  };
}

export function boolean(): Kind<boolean> {
  return {
    name: "boolean",
    bounds: "",
    read: (raw) =>
      typeof raw === "boolean" ? ok(raw) : problem(`must be true or false, is ${quoted(raw)}`),
    fromText: (text) => (text === "true" ? true : text === "false" ? false : text),
    show: (value) => value,
  };
}

/** One of several words. */
export function choice<const W extends string>(words: readonly W[]): Kind<W> {
  const list = words.join(", ");
  return {
    name: "word",
    bounds: list,
    read(raw) {
      const found = words.find((word) => word === raw);
      return found === undefined ? problem(`must be one of ${list}, is ${quoted(raw)}`) : ok(found);
    },
    fromText: asIs,
    show: (value) => value,
  };
}

/** Milliseconds; the bounds use the notation of the values. */
export function duration(min: string, max: string): Kind<number> {
  const minMs = parseDuration(min) ?? 0;
  const maxMs = parseDuration(max) ?? 0;
  return {
    name: "duration",
    bounds: `${min} to ${max}`,
    read(raw) {
      const ms = typeof raw === "string" ? parseDuration(raw) : null;
      if (ms === null) {
        return problem(`must be a duration with a unit, like "250ms" or "30s", is ${quoted(raw)}`);
      }
      if (ms < minMs || ms > maxMs) {
        return problem(`must be from ${min} to ${max}, is ${quoted(raw)}`);
      }
      return ok(ms);
    },
    fromText: asIs,
    show: formatDuration,
  };
}

/** `host:port`, or `[ipv6]:port`. */
const LISTEN_FORM = /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9.-]{1,253})):(\d{1,5})$/;

/** `host:port`, IPv6 in brackets. With `ipOnly`, a host name is rejected. */
export function listen(ipOnly = false): Kind<ListenAddress> {
  const form = ipOnly ? '"ip:port"' : '"host:port"';
  return {
    name: "address",
    bounds: "port 0: any free one",
    read(raw) {
      const match = typeof raw === "string" ? LISTEN_FORM.exec(raw) : null;
      if (match === null) {
        return problem(`must be ${form}, IPv6 as "[::1]:8080", is ${quoted(raw)}`);
      }
      const [, bracketed, plain = "", portText] = match;
      const port = Number(portText);
      if (port > 65_535) return problem(`must have a port from 0 to 65535, is ${quoted(raw)}`);
      if (bracketed !== undefined) {
        return isIP(bracketed) === 6
          ? ok({ host: bracketed, port })
          : problem(`must have an IPv6 address between the brackets, is ${quoted(raw)}`);
      }
      // A name of only digits and dots is a mistyped IPv4 address.
      const mistyped = /^[\d.]+$/.test(plain) && isIP(plain) !== 4;
      if (mistyped || (ipOnly && isIP(plain) === 0)) {
        return problem(`must be ${form} with a valid IP address, is ${quoted(raw)}`);
      }
      return ok({ host: plain, port });
    },
    fromText: asIs,
    show: formatListen,
  };
}

/** `host:port` that others connect to: a host name too, and no port 0. */
export function remote(): Kind<ListenAddress> {
  const kind = listen();
  return {
    ...kind,
    bounds: "port 1 to 65535",
    read(raw, directory) {
      const reading = kind.read(raw, directory);
      return reading.kind === "ok" && reading.value.port === 0
        ? problem(`must have a port from 1 to 65535, is ${quoted(raw)}`)
        : reading;
    },
  };
}

/** The text that the `listen` kind parses back. */
export function formatListen({ host, port }: ListenAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A URL with one of the schemes. Its password, path and query are treated as secrets. */
export function url(schemes: readonly string[]): Kind<string> {
  const list = schemes.map((scheme) => `${scheme}://`).join(" or ");
  return {
    name: "URL",
    bounds: list,
    read(raw) {
      if (typeof raw !== "string" || !URL.canParse(raw)) {
        return problem(`must be a URL that starts with ${list}`);
      }
      const parsed = new URL(raw);
      if (!schemes.includes(parsed.protocol.slice(0, -1))) {
        return problem(`must start with ${list}`);
      }
      if (parsed.hostname === "") return problem("must name a host");
      const isHttp = parsed.protocol.startsWith("http");
      const canBeSent = !isHttp || [parsed.username, parsed.password].every(isDecodable);
      return canBeSent ? ok(raw) : problem("has a % in its name or password; write it as %25");
    },
    fromText: asIs,
    show: hideUrl,
  };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    // The exception contains no further information.
    return false;
  }
}

/** Hosted nodes put keys into the path or the query, so only scheme and host are shown. */
function hideUrl(text: string): string {
  const { protocol, username, password, host, pathname, search, hash } = new URL(text);
  const login = username === "" && password === "" ? "" : `${HIDDEN}@`;
  const bare = pathname === "" || pathname === "/";
  const rest = bare && search === "" && hash === "" ? "" : `/${HIDDEN}`;
  return `${protocol}//${login}${host}${rest}`;
}

/** A file path relative to the configuration's folder, absolute once read. */
export function path(): Kind<string> {
  return {
    name: "path",
    bounds: "",
    read: (raw, directory) =>
      typeof raw === "string" && raw !== "" && !raw.includes("\0")
        ? ok(resolve(directory, raw))
        : problem(`must be the path of a file, is ${quoted(raw)}`),
    fromText: asIs,
    show: (value) => value,
  };
}

/** Distinct account addresses of the network: base58 of 32 bytes. */
export function accounts(countMax: number, countMin = 1): Kind<readonly string[]> {
  return {
    name: "list of accounts",
    bounds: `${countMin} to ${countMax} base58 addresses`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length < countMin || raw.length > countMax) {
        const found = Array.isArray(raw) ? `has ${raw.length}` : `is ${quoted(raw)}`;
        return problem(`must be an array of ${countMin} to ${countMax} base58 addresses, ${found}`);
      }
      const list: string[] = [];
      for (const item of raw) {
        if (typeof item !== "string" || decodeBase58(item, 32)?.length !== 32) {
          return problem(`must hold base58 addresses of 32 bytes, holds ${quoted(item)}`);
        }
        if (list.includes(item)) return problem(`must not name an address twice: ${item}`);
        list.push(item);
      }
      return ok(Object.freeze(list));
    },
    fromText: (text) => (text.trim() === "" ? [] : text.split(",").map((item) => item.trim())),
    show: (value) => value,
  };
}

/** Replaces a secret. */
export const HIDDEN = "hidden";

/** Maximum length of a quoted invalid value. */
const QUOTED_CHARACTERS_MAX = 80;
