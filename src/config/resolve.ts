/**
 * Converts a parsed file and an environment to a configuration or the list of all problems. Pure:
 * `load.ts` reads the input. The environment overrides the file; the file's value is still checked,
 * so that removing the variable later cannot reveal an invalid one.
 *
 * Decision: docs/decisions/0036-unknown-environment-variables-are-refused.md
 */

import { strict as assert } from "node:assert";
import { assemble, assembleControl, type Config, type ControlConfig } from "./config.ts";
import { isLoopback } from "./site-types.ts";
import type { Key, KeyPath, Service, ValueOf } from "./table.ts";
import {
  ENVIRONMENT_PREFIX,
  environmentName,
  isKeyPath,
  isReadBy,
  KEY_PATHS,
  KEYS,
} from "./table.ts";
import type { Raw } from "./value-types.ts";

/** One problem, with its key path or, if the value came from there, its environment variable. */
export interface Problem {
  readonly key: string;
  readonly message: string;
}

export type Resolved<C = Config> =
  | { readonly kind: "ok"; readonly config: C; readonly shown: ShownValues }
  | { readonly kind: "problems"; readonly problems: readonly Problem[] };

/** The effective, printable value of each key that is read; null if absent. */
export type ShownValues = ReadonlyMap<KeyPath, Raw | null>;

export interface Source {
  /** The parsed file; null on a syntax error, which its reader reports. */
  readonly file: Readonly<Record<string, unknown>> | null;
  /** Base of relative paths. */
  readonly directory: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** An edge's configuration; `problems` is never empty when returned. */
export function resolveConfig(source: Source): Resolved {
  return resolveKeys(source, "edge", assemble);
}

/** The control process's configuration. */
export function resolveControl(source: Source): Resolved<ControlConfig> {
  return resolveKeys(source, "control", assembleControl);
}

/** Reads all keys, including the other service's, which may be missing. */
function resolveKeys<C>(
  { file, directory, environment }: Source,
  service: Service,
  build: (at: <P extends KeyPath>(path: P) => ValueOf<P>) => C,
): Resolved<C> {
  const problems: Problem[] = [];
  const given = new Map<KeyPath, unknown>();
  const values = new Map<KeyPath, unknown>();
  const shown = new Map<KeyPath, Raw | null>();

  const readOne = (path: KeyPath, raw: unknown, source: string): void => {
    // The union of all keys' types cannot be called with one key's value; `values` keeps them
    // unknown until `assemble` requests each by its path.
    const key = KEYS[path] as Key<unknown>;
    const reading = key.kind.read(raw, directory);
    if (reading.kind === "problem") {
      problems.push({ key: source, message: reading.message });
      return;
    }
    values.set(path, reading.value);
    if (isReadBy(service, path)) shown.set(path, key.kind.show(reading.value));
  };

  if (file !== null) {
    collect(file, "", given, problems);
    for (const [path, raw] of given) readOne(path, raw, path);
  }
  for (const [path, raw, variable] of overrides(environment, problems)) {
    given.set(path, raw);
    readOne(path, raw, `${variable} (${path})`);
  }
  for (const path of KEY_PATHS) {
    if (given.has(path)) continue;
    const { fallback, neededBy } = KEYS[path];
    if (fallback !== null) {
      readOne(path, fallback, path);
    } else if (neededBy === null) {
      values.set(path, null);
      if (isReadBy(service, path)) shown.set(path, null);
    } else if (neededBy === service && file !== null) {
      problems.push({ key: path, message: "must be given" });
    }
  }
  if (file !== null) checkTogether[service](given, values, problems);
  if (file === null || problems.length > 0) return { kind: "problems", problems };
  const config = build(<P extends KeyPath>(path: P) => {
    assert(values.has(path), `${service} reads ${path}, which it did not demand`);
    // Each value was read by its own key's kind, so it has that key's type.
    return values.get(path) as ValueOf<P>;
  });
  return { kind: "ok", config, shown };
}

/** Walks the file's tables and separates known keys from problems. */
function collect(
  table: Readonly<Record<string, unknown>>,
  prefix: string,
  given: Map<KeyPath, unknown>,
  problems: Problem[],
): void {
  for (const [name, value] of Object.entries(table)) {
    const path = prefix + name;
    if (isKeyPath(path)) {
      given.set(path, value);
    } else if (isTable(value) && isSection(path)) {
      collect(value, `${path}.`, given, problems);
    } else if (isSection(path)) {
      problems.push({ key: path, message: `must be a table, written [${path}]` });
    } else {
      problems.push({ key: path, message: unknownMessage("key", path, KNOWN) });
    }
  }
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  const object = typeof value === "object" && value !== null;
  return object && !Array.isArray(value) && !(value instanceof Date);
}

function isSection(path: string): boolean {
  return SECTIONS.includes(path);
}

/** Variables with our prefix; one that matches no key is a problem. */
function overrides(
  environment: Source["environment"],
  problems: Problem[],
): (readonly [KeyPath, unknown, string])[] {
  const paths = new Map(KEY_PATHS.map((path) => [environmentName(path), path]));
  const found: (readonly [KeyPath, unknown, string])[] = [];
  for (const [variable, text] of Object.entries(environment).sort()) {
    if (text === undefined || !variable.startsWith(ENVIRONMENT_PREFIX)) continue;
    const path = paths.get(variable);
    if (path === undefined) {
      const message = unknownMessage("environment variable", variable, [...paths.keys()]);
      const hint = SERVICE_LINK.test(variable) ? `; ${SERVICE_LINK_HINT}` : "";
      problems.push({ key: variable, message: message + hint });
    } else {
      found.push([path, KEYS[path].kind.fromText(text), variable]);
    }
  }
  return found;
}

/** Variables that Kubernetes sets for a Service in every container, 2026-11. */
const SERVICE_LINK = /_(?:SERVICE_(?:HOST|PORT)(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;
const SERVICE_LINK_HINT =
  "Kubernetes sets one like it for each Service; enableServiceLinks: false leaves them out";

type Together = (
  given: ReadonlyMap<KeyPath, unknown>,
  values: ReadonlyMap<KeyPath, unknown>,
  problems: Problem[],
) => void;

const checkEdge: Together = (given, values, problems) => {
  const sources = ["accounts.keys_file", "accounts.database_url"] as const;
  const count = sources.filter((path) => given.has(path)).length;
  if (count !== 1) {
    const found = count === 0 ? "none is" : "both are";
    const message = `exactly one of ${sources.join(" and ")} must be given, ${found}`;
    problems.push({ key: "accounts", message });
  }
  if (given.has("limits.redis_url") && given.has("accounts.keys_file")) {
    const message = "has no effect with accounts.keys_file, it needs accounts.database_url";
    problems.push({ key: "limits.redis_url", message });
  }
  for (const [path, other] of TLS_PAIRS) {
    if (given.has(path) || !given.has(other)) continue;
    problems.push({ key: path, message: `must be given, because ${other} is` });
  }
  // Both were read by the address kind, or are missing because of another problem.
  const http = values.get("http.listen") as ValueOf<"http.listen"> | undefined;
  const admin = values.get("admin.listen") as ValueOf<"admin.listen"> | undefined;
  if (http === undefined || admin === undefined || http.port === 0) return;
  if (http.port === admin.port && http.host === admin.host) {
    problems.push({ key: "admin.listen", message: "must differ from http.listen" });
  }
};

/** The second has no use without the first. */
const TLS_PAIRS = [
  ["http.tls.certificate", "http.tls.key"],
  ["http.tls.key", "http.tls.certificate"],
  ["quic.tls.certificate", "quic.tls.key"],
  ["quic.tls.key", "quic.tls.certificate"],
  ["quic.listen", "quic.tls.certificate"],
] as const satisfies readonly (readonly [KeyPath, KeyPath])[];

const checkControl: Together = (given, values, problems) => {
  if (!given.has("accounts.database_url")) {
    problems.push({ key: "accounts.database_url", message: "must be given" });
  }
  // As in `checkEdge`: read by their own kinds, or missing because of another problem.
  const idle = values.get("control.session_idle") as number | undefined;
  const max = values.get("control.session_max") as number | undefined;
  if (idle !== undefined && max !== undefined && idle > max) {
    problems.push({ key: "control.session_idle", message: "must not exceed control.session_max" });
  }
  const issuer = values.get("control.oidc_issuer") as string | undefined;
  if (issuer?.startsWith("http:") && !isLoopback(new URL(issuer).hostname)) {
    const message = "must start with https://, http:// is for loopback only";
    problems.push({ key: "control.oidc_issuer", message });
  }
};

/** Rules over several keys. Keys that already have a problem are skipped. */
const checkTogether: Readonly<Record<Service, Together>> = {
  edge: checkEdge,
  control: checkControl,
};

function unknownMessage(what: string, found: string, known: readonly string[]): string {
  const near = known
    .map((candidate) => ({ candidate, distance: editDistance(found, candidate) }))
    .sort((a, b) => a.distance - b.distance)[0];
  const close = near !== undefined && near.distance <= 3 && near.distance < found.length / 3;
  return close ? `unknown ${what}; did you mean ${near.candidate}?` : `unknown ${what}`;
}

/** Levenshtein distance; both texts are truncated to bound the time. */
function editDistance(left: string, right: string): number {
  const a = left.slice(0, 64);
  const b = right.slice(0, 64);
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1;
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + change,
        ),
      );
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/** The tables, and the tables in them. */
const SECTIONS: readonly string[] = [
  ...new Set(
    KEY_PATHS.flatMap((path) => [...path.matchAll(/\./g)].map(({ index }) => path.slice(0, index))),
  ),
];
const KNOWN: readonly string[] = [...KEY_PATHS, ...SECTIONS];
