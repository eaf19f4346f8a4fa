/**
 * More kinds of values: lines of text, secrets, sites and lists of named places. As in `kinds.ts`,
 * `read` never throws, and what may carry a secret is quoted in no message.
 */

import { asIs, HIDDEN, type Kind, LISTEN_FORM, ok, problem, quoted, url } from "./kinds.ts";

/** A line of text that is no secret. */
export function text(charsMax: number): Kind<string> {
  return {
    name: "text",
    bounds: `1 to ${charsMax} characters`,
    read: (raw) =>
      typeof raw === "string" && isLine(raw, charsMax)
        ? ok(raw)
        : problem(`must be a line of 1 to ${charsMax} characters, is ${quoted(raw)}`),
    fromText: asIs,
    show: (value) => value,
  };
}

/** Lines of text, none twice. */
export function texts(countMax: number, charsMax: number): Kind<readonly string[]> {
  return {
    name: "list of texts",
    bounds: `0 to ${countMax}`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length > countMax) {
        return problem(`must be an array of 0 to ${countMax} texts, is ${quoted(raw)}`);
      }
      const list: string[] = [];
      for (const item of raw) {
        if (typeof item !== "string" || !isLine(item, charsMax)) {
          return problem(`must hold lines of 1 to ${charsMax} characters, holds ${quoted(item)}`);
        }
        if (list.includes(item)) return problem(`must not hold ${quoted(item)} twice`);
        list.push(item);
      }
      return ok(Object.freeze(list));
    },
    fromText: splitText,
    show: (value) => value,
  };
}

/** Never quoted, never shown. */
export function secret(): Kind<string> {
  return {
    name: "secret",
    bounds: "1 to 1024 characters",
    read: (raw) =>
      typeof raw === "string" && isLine(raw, 1024)
        ? ok(raw)
        : problem("must be a line of 1 to 1024 characters"),
    fromText: asIs,
    show: () => HIDDEN,
  };
}

/** Scheme and host of a site, without a path. */
export function origin(): Kind<string> {
  return {
    name: "URL",
    bounds: "https://host, or http:// on loopback",
    read(raw) {
      const parsed = typeof raw === "string" && URL.canParse(raw) ? new URL(raw) : null;
      if (parsed === null || !["http:", "https:"].includes(parsed.protocol)) {
        return problem("must be a URL that starts with https:// or http://");
      }
      if (parsed.href !== `${parsed.origin}/`) {
        return problem("must be scheme and host alone, without a login, a path or a query");
      }
      if (parsed.protocol === "http:" && !isLoopback(parsed.hostname)) {
        return problem("must start with https://, http:// is for loopback only");
      }
      return ok(parsed.origin);
    },
    fromText: asIs,
    show: (value) => value,
  };
}

/** Whether a URL's host is this machine, so that plain HTTP gives nothing away. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** A URL with a place for something. */
export function urlTemplate(place: string): Kind<string> {
  return {
    name: "URL",
    bounds: `https:// or http://, with ${place}`,
    read: (raw) =>
      typeof raw === "string" && URL.canParse(raw) && /^https?:/.test(raw) && raw.includes(place)
        ? ok(raw)
        : problem(`must be a URL that starts with https:// and holds ${place}`),
    fromText: asIs,
    show: (value) => value,
  };
}

/** Something that has a name, as the dashboard and the log call it. */
export interface Named {
  readonly name: string;
  /** An http URL without a slash at its end, or `host:port`. */
  readonly at: string;
}

/** `["name=URL"]` or `["name=host:port"]`, no name twice. */
export function namedList(what: "url" | "address", countMax: number): Kind<readonly Named[]> {
  const form = what === "url" ? "name=URL" : "name=host:port";
  const place = what === "url" ? url(["http", "https"]) : null;
  return {
    name: "list of names",
    bounds: `0 to ${countMax} of ${form}`,
    read(raw, directory) {
      if (!Array.isArray(raw) || raw.length > countMax) {
        return problem(`must be an array of 0 to ${countMax} "${form}", is ${quoted(raw)}`);
      }
      const list: Named[] = [];
      for (const item of raw) {
        const match = typeof item === "string" ? NAMED_FORM.exec(item) : null;
        const [, itemName = "", at = ""] = match ?? [];
        const fits = place?.read(at, directory).kind === "ok" || LISTEN_FORM.test(at);
        if (match === null || !fits) return problem(`must hold "${form}", one does not fit`);
        if (list.some((known) => known.name === itemName)) {
          return problem(`must not hold the name ${quoted(itemName)} twice`);
        }
        list.push({ name: itemName, at: at.replace(/\/+$/, "") });
      }
      return ok(Object.freeze(list));
    },
    fromText: splitText,
    show: (value) => value.map((item) => `${item.name}=${item.at}`),
  };
}

const NAMED_FORM = /^([A-Za-z0-9][A-Za-z0-9._-]{0,31})=(\S{1,512})$/;

function isLine(raw: string, charsMax: number): boolean {
  return raw.length >= 1 && raw.length <= charsMax && /^[^\p{Cc}]*$/u.test(raw);
}

/** An environment variable's list. */
function splitText(list: string): unknown {
  return list === "" ? [] : list.split(",").map((item) => item.trim());
}
