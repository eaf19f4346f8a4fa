/**
 * One line of the key journal: how keys and changes stand in it, and how it is told whole from
 * broken.
 *
 *     <crc32, 8 hex digits> <JSON of one batch of changes>\n
 *
 * A line names every plan that its keys are on, so it can be read whatever came before it.
 */

import { readSync } from "node:fs";
import { crc32 } from "node:zlib";
import { KEY_JOURNAL_LINE_BYTES_MAX } from "../limits.ts";
import type { Plan, StoredKey } from "./key.ts";
import { networksOf } from "./policy.ts";
import type { Revision } from "./revision.ts";

/** One step from a set of keys to the next. */
export interface KeyChanges {
  /** The set that it changes. */
  readonly since: Revision;
  /** The set that it leads to. */
  readonly revision: Revision;
  readonly plans: readonly Plan[];
  readonly puts: readonly StoredKey[];
  /** Digests of keys that are no longer good. */
  readonly removals: readonly Buffer[];
}

/** first: the start of a whole set; more: its rest; last: its end; change: a change to it. */
export type LineStep = "first" | "more" | "last" | "change";

/** As it stands in the file. */
export interface Line {
  readonly step: LineStep;
  readonly since: Revision;
  readonly revision: Revision;
  readonly plans: readonly Plan[];
  readonly puts: readonly LineKey[];
  /** base64 */
  readonly removals: readonly string[];
}

/** Digest in base64, id, account, name of the plan, and what narrows it: end, networks, limit. */
export type LineKey = readonly [string, string, string, string, LinePolicy | null];
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

/** What a line says, null when it was not written whole. */
export function parsedLine(text: string): Line | null {
  const json = text.slice(CHECKSUM_CHARS + 1);
  const found = text.slice(0, CHECKSUM_CHARS);
  if (found !== checksum(json, FORM) && found !== checksum(json, FORM_BEFORE_MARKS)) return null;
  // Its checksum says that this module wrote it, or what this module was before marks.
  const line = JSON.parse(json) as Line & Record<"since" | "revision", Revision | number>;
  return { ...line, since: revisionOf(line.since), revision: revisionOf(line.revision) };
}

function revisionOf(written: Revision | number): Revision {
  return typeof written === "number" ? { number: written, mark: null } : written;
}

/** @throws RangeError for a key on a plan that was never named */
export function decodedKey(key: LineKey, plans: ReadonlyMap<string, Plan>): StoredKey {
  const [digest, keyId, account, planName, narrowed] = key;
  const plan = plans.get(planName);
  if (plan === undefined) throw new RangeError(`the key journal names no plan ${planName}`);
  const policy = narrowed === null ? null : decodedPolicy(narrowed);
  return { sha256: Buffer.from(digest, "base64"), keyId, account, plan, policy };
}

function encodedKey({ sha256, keyId, account, plan, policy }: StoredKey): LineKey {
  const { expiresUnixMs = null, networks = null, limit = null } = policy ?? {};
  const narrowed: LinePolicy | null =
    policy === null
      ? null
      : [expiresUnixMs, networks?.ranges ?? null, limit?.ratePerSecond ?? 0, limit?.burst ?? 0];
  return [sha256.toString("base64"), keyId, account, plan.name, narrowed];
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
 * What checksums begin with. A version that knows no marks must find no line of its own here: it
 * would ask the database for what follows a mark, which fails for ever, and keep revoked keys. So
 * it reads everything instead.
 */
const FORM = 1;
const FORM_BEFORE_MARKS = 0;

const CHECKSUM_CHARS = 8;
const CHUNK_BYTES = 1024 * 1024;
const LF = 10;

/** A file's lines with the place where each ends; a last piece without an end has text null. */
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
