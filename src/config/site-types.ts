/**
 * More value kinds: text, secrets, sites and lists of named endpoints. As in `value-types.ts`,
 * `read` never throws, and no message quotes a possible secret.
 */

import { isIP } from "node:net";
import { asIs, HIDDEN, type Kind, ok, problem, quoted, remote, url } from "./value-types.ts";

/** A line of text that is not secret. */
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

/** Distinct networks in CIDR notation, or single addresses. */
export function networks(countMax: number): Kind<readonly string[]> {
  return texts(countMax, {
    ...{ name: "list of networks", plural: "networks", fits: isNetwork },
    needed: "networks like 203.0.113.0/24 or 2001:db8::/32",
  });
}

/** Distinct login identities, each the provider's issuer, a space and the subject. */
export function identities(countMax: number): Kind<readonly string[]> {
  return texts(countMax, {
    ...{ name: "list of texts", plural: "texts", fits: (item) => /^https?:\/\/\S+ \S/.test(item) },
    needed: '"ISSUER SUBJECT", the issuer as a URL',
  });
}

/** Required form of a list's items. */
interface Form {
  readonly name: string;
  readonly plural: string;
  /** The requirement as messages state it. */
  readonly needed: string;
  fits(item: string): boolean;
}

/** Distinct lines of text of one form. */
function texts(countMax: number, form: Form): Kind<readonly string[]> {
  return {
    name: form.name,
    bounds: `0 to ${countMax}`,
    read(raw) {
      if (!Array.isArray(raw) || raw.length > countMax) {
        return problem(`must be an array of 0 to ${countMax} ${form.plural}, is ${quoted(raw)}`);
      }
      const list: string[] = [];
      for (const item of raw) {
        if (typeof item !== "string" || !isLine(item, ITEM_CHARS_MAX) || !form.fits(item)) {
          return problem(`must hold ${form.needed}, holds ${quoted(item)}`);
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

/** As the address matcher accepts it; a network of all addresses (/0) is rejected. */
function isNetwork(item: string): boolean {
  const [, address = "", bits = "1"] = /^([0-9a-fA-F:.]+)(?:\/([1-9]\d{0,2}))?$/.exec(item) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(bits) <= (family === 4 ? 32 : 128);
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

/** As `secret`, for the value of a header. */
export function headerSecret(): Kind<string> {
  const any = secret();
  return {
    ...any,
    bounds: `${any.bounds} of ASCII`,
    read: (raw, directory) =>
      typeof raw === "string" && /^[\x20-\x7e]*$/.test(raw)
        ? any.read(raw, directory)
        : problem("must be a line of 1 to 1024 ASCII characters"),
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

/** Whether a URL's host is this machine, so that plain HTTP exposes nothing. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** A URL with a placeholder. */
export function urlTemplate(place: string): Kind<string> {
  return {
    name: "URL",
    bounds: `https:// or http://, with ${place}`,
    read: (raw) =>
      typeof raw === "string" && URL.canParse(raw) && /^https?:/.test(raw) && raw.includes(place)
        ? ok(raw)
        : problem(`must be a URL that starts with https:// or http:// and holds ${place}`),
    fromText: asIs,
    show: (value) => value,
  };
}

/** A named endpoint; the dashboard and the log use the name. */
export interface Named {
  readonly name: string;
  /** An http URL without a trailing slash, or `host:port`. */
  readonly at: string;
}

/** A service's scheme, host and port; any other URL part would be ignored, so it is rejected. */
export function hostUrl(): Kind<string> {
  return plainUrl("scheme, host and port alone", ({ pathname }) => pathname === "/");
}

/** The address of Valkey or Redis, whose client decodes the login. */
export function storeUrl(): Kind<string> {
  const any = url(["redis", "rediss"]);
  return {
    ...any,
    read(raw, directory) {
      const reading = any.read(raw, directory);
      if (reading.kind === "problem" || hasDecodableLogin(new URL(reading.value))) return reading;
      return problem('must have a login that is percent-encoded, a "%" in it as %25');
    },
  };
}

function hasDecodableLogin({ username, password }: URL): boolean {
  try {
    return decodeURIComponent(`${username}:${password}`) !== "";
  } catch {
    return false;
  }
}

/** A URL without login, query and fragment that meets a further condition. */
function plainUrl(needed: string, fits: (parsed: URL) => boolean): Kind<string> {
  const any = url(["http", "https"]);
  return {
    ...any,
    read(raw, directory) {
      const reading = any.read(raw, directory);
      if (reading.kind === "problem") return reading;
      const parsed = new URL(reading.value);
      const { username, password, search, hash } = parsed;
      const isPlain = [username, password, search, hash].every((part) => part === "");
      return isPlain && fits(parsed) ? reading : problem(`must be ${needed}`);
    },
  };
}

/** A URL that is shown, and to which paths are appended. */
function namedUrl(): Kind<string> {
  return plainUrl("without a login, a query and a fragment", () => true);
}

/** `["name=URL"]` or `["name=host:port"]` with distinct names. */
export function namedList(what: "url" | "address", countMax: number): Kind<readonly Named[]> {
  const form = what === "url" ? "name=URL" : "name=host:port";
  const place = what === "url" ? namedUrl() : remote();
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
        const reading = place.read(at, directory);
        if (match === null) return problem(`must hold "${form}", one does not fit`);
        if (reading.kind === "problem") return problem(`"${itemName}" ${reading.message}`);
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

/** An issuer is shorter than half of this, a subject at most 255. */
const ITEM_CHARS_MAX = 512;
const NAMED_FORM = /^([A-Za-z0-9][A-Za-z0-9._-]{0,31})=(\S{1,512})$/;

function isLine(raw: string, charsMax: number): boolean {
  return raw.length >= 1 && raw.length <= charsMax && /^[^\p{Cc}]*$/u.test(raw);
}

/** Splits an environment variable's list. */
function splitText(list: string): unknown {
  return list === "" ? [] : list.split(",").map((item) => item.trim());
}
