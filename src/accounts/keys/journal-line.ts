/**
 * One line of the key journal: its format for keys and changes, and the detection of incomplete
 * lines.
 *
 *    <crc32, 8 hex digits> <JSON of one batch of changes>\n
 *
 * A line contains every plan of its keys, so it can be read independently of earlier lines.
 */

import { readSync } from "node:fs";
import { crc32 } from "node:zlib";
import { networksOf } from "../../runtime/networks.ts";
import { KEY_JOURNAL_LINE_BYTES_MAX } from "../limits.ts";
import type { Plan, StoredKey } from "./key.ts";
import type { Revision } from "./revision.ts";

/** One step from a set of keys to the next. */
export interface KeyChanges {
  /** The set that it changes. */
  readonly since: Revision;
  /** The set that results. */
  readonly revision: Revision;
  readonly plans: readonly Plan[];
  readonly puts: readonly StoredKey[];
  /** Digests of keys that are no longer valid. */
  readonly removals: readonly Buffer[];
}

/** first: start of a full set; more: continuation; last: its end; change: a change to it. */
export type LineStep = "first" | "more" | "last" | "change";

/** The format in the file. */
export interface Line {
  readonly step: LineStep;
  readonly since: Revision;
  readonly revision: Revision;
  readonly plans: readonly Plan[];
  readonly puts: readonly LineKey[];
  /** base64 */
  readonly removals: readonly string[];
}

/**
 * Digest in base64, id, account, plan name, restrictions (expiry, networks, limit), and 1 for a
 * public key that follows from an API key, which versions before did not write.
 */
export type LineKey = readonly [string, string, string, string, LinePolicy | null, 1?];
type LinePolicy = readonly [number | null, readonly string[] | null, number, number];

/** The bytes of a line. */
export function lineOf(step: LineStep, changes: KeyChanges): Buffer {
  const { since, revision, puts, removals } = changes;
  const plans = new Map(changes.plans.map((plan) => [plan.name, plan]));
  for (const { plan } of puts) if (!plans.has(plan.name)) plans.set(plan.name, plan);
  const line: Line = {
    step,
    since,
    revision,
    plans: [...plans.values()],
    puts: puts.map(encodedKey),
    removals: removals.map((sha256) => sha256.toString("base64")),
  };
  const text = JSON.stringify(line);
  return Buffer.from(`${checksum(text, FORM)} ${text}\n`);
}

/** The contents of a line, null if it was not written completely. */
export function parsedLine(text: string): Line | null {
  const json = text.slice(CHECKSUM_CHARS + 1);
  const found = text.slice(0, CHECKSUM_CHARS);
  if (found !== checksum(json, FORM) && found !== checksum(json, FORM_BEFORE_MARKS)) return null;
  // The checksum proves that this module wrote it, or its version before marks.
  const line = JSON.parse(json) as Line & Record<"since" | "revision", Revision | number>;
  return { ...line, since: revisionOf(line.since), revision: revisionOf(line.revision) };
}

function revisionOf(written: Revision | number): Revision {
  return typeof written === "number" ? { number: written, mark: null } : written;
}

/** @throws RangeError for a key whose plan was not defined */
export function decodedKey(key: LineKey, plans: ReadonlyMap<string, Plan>): StoredKey {
  const [digest, keyId, account, planName, narrowed, derived] = key;
  const plan = plans.get(planName);
  if (plan === undefined) throw new RangeError(`the key journal names no plan ${planName}`);
  const policy = narrowed === null ? null : decodedPolicy(narrowed);
  const sha256 = Buffer.from(digest, "base64");
  return { sha256, keyId, account, plan, policy, isDerived: derived === 1 };
}

function encodedKey({ sha256, keyId, account, plan, policy, isDerived }: StoredKey): LineKey {
  const { expiresUnixMs = null, networks = null, limit = null } = policy ?? {};
  const narrowed: LinePolicy | null =
    policy === null
      ? null
      : [expiresUnixMs, networks?.ranges ?? null, limit?.ratePerSecond ?? 0, limit?.burst ?? 0];
  const fields = [sha256.toString("base64"), keyId, account, plan.name, narrowed] as const;
  return isDerived ? [...fields, 1] : fields;
}

function decodedPolicy(narrowed: LinePolicy): StoredKey["policy"] {
  const [expiresUnixMs, ranges, ratePerSecond, burst] = narrowed;
  const networks = ranges === null ? null : networksOf(ranges);
  return { expiresUnixMs, networks, limit: burst === 0 ? null : { ratePerSecond, burst } };
}

function checksum(text: string, form: number): string {
  return crc32(text, form).toString(16).padStart(CHECKSUM_CHARS, "0");
}

/**
 * Prefix of the checksum input. A version without marks must not recognize these lines: it would
 * ask the database for changes after a mark, fail forever, and keep revoked keys. It reads all keys
 * instead.
 */
const FORM = 1;
const FORM_BEFORE_MARKS = 0;

const CHECKSUM_CHARS = 8;
const CHUNK_BYTES = 1024 * 1024;
const LF = 10;

/** A file's lines, each with its end offset; an unterminated last line has text null. */
export function* linesOf(
  file: number,
): Generator<{ readonly text: string | null; readonly end: number }> {
  let rest = Buffer.alloc(0);
  let place = 0;
  let size = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const count = readSync(file, chunk, 0, CHUNK_BYTES, size);
    size += count;
    if (count === 0) break;
    rest = Buffer.concat([rest, chunk.subarray(0, count)]);
    let start = 0;
    for (let end = rest.indexOf(LF); end !== -1; end = rest.indexOf(LF, start)) {
      yield { text: rest.toString("utf8", start, end), end: place + end + 1 };
      start = end + 1;
    }
    place += start;
    rest = rest.subarray(start);
    if (rest.length > KEY_JOURNAL_LINE_BYTES_MAX) break;
  }
  if (rest.length > 0) yield { text: null, end: place + rest.length };
}
