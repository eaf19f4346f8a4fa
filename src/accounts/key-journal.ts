/**
 * The last good keys on disk, so that an edge which starts while the database is down serves those
 * whom it knew, and refuses keys that were revoked a moment before it was killed.
 *
 *     <crc32, 8 hex digits> <JSON of one batch of changes>\n
 *
 * The file is a whole set of keys followed by every change since, each line checked by itself. What
 * is behind the first line that does not hold was being written when the process ended and is cut
 * off. Digests and limits stand in it, never a key; only its owner can read it.
 */

import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { KEY_JOURNAL_LINE_BYTES_MAX } from "../core/account-limits.ts";
import type { Plan, StoredKey } from "./key.ts";
import type { KeyTable } from "./key-table.ts";
import { networksOf } from "./restriction.ts";

/** One step from a set of keys to the next; `revision` holds after it. */
export interface KeyChanges {
  readonly revision: number;
  readonly plans: readonly Plan[];
  readonly puts: readonly StoredKey[];
  /** Digests of keys that are no longer good. */
  readonly removals: readonly Buffer[];
}

export interface KeyJournal {
  /**
   * Fills the table with what the file holds, and cuts off what was not written whole.
   *
   * @returns the revision, null where there is no file or no whole set of keys in it
   */
  load(table: KeyTable): number | null;
  /** Adds a change. It is on disk, as far as a killed process goes, when this returns. */
  append(changes: KeyChanges): void;
  /**
   * Writes the table anew as the whole set, in steps between which `pause` is awaited; changes that
   * come meanwhile are kept. The old file stays until the new one is whole.
   */
  rewrite(table: KeyTable, revision: number, pause: () => Promise<void>): Promise<void>;
  /** Whether most of the file is changes, so that a rewrite is worth it. */
  readonly isLong: boolean;
  close(): void;
  readonly counters: { linesRead: number; bytesCut: number; appends: number; rewrites: number };
}

/** Keys of one line; small, because a line is made between two requests. */
const LINE_KEYS = 200;
const CHUNK_BYTES = 1024 * 1024;
const LONG_BYTES_MIN = 1024 * 1024;

/** The file is made on the first write. @throws Error of the file system where it cannot be read */
export function createKeyJournal(path: string): KeyJournal {
  const counters = { linesRead: 0, bytesCut: 0, appends: 0, rewrites: 0 };
  let file: number | null = null;
  /** Bytes of the whole set, and of the file. */
  let baseBytes = 0;
  let bytes = 0;
  /** Changes that came while the file is written anew. */
  let meanwhile: KeyChanges[] | null = null;

  function write(to: number, line: Buffer): void {
    writeSync(to, line);
  }

  return {
    counters,
    get isLong() {
      return bytes - baseBytes > Math.max(baseBytes, LONG_BYTES_MIN);
    },
    load(table) {
      const opened = openExisting(path);
      if (opened === null) return null;
      const found = readInto(opened, table, counters);
      if (found.bytes < found.size) {
        counters.bytesCut += found.size - found.bytes;
        ftruncateSync(opened, found.bytes);
      }
      if (found.revision === null) {
        closeSync(opened);
        return null;
      }
      file = opened;
      bytes = found.bytes;
      baseBytes = found.baseBytes;
      return found.revision;
    },
    append(changes) {
      counters.appends += 1;
      meanwhile?.push(changes);
      if (file === null) return;
      const line = lineOf({ ...encoded(changes), step: "change" });
      // The place is named, because opening for reading and writing starts at the beginning.
      writeSync(file, line, 0, line.length, bytes);
      bytes += line.length;
    },
    async rewrite(table, revision, pause) {
      if (meanwhile !== null) return;
      meanwhile = [];
      const fresh = `${path}.new`;
      mkdirSync(dirname(path), { recursive: true });
      const next = openSync(fresh, "w+", 0o600);
      try {
        let written = 0;
        for await (const line of wholeSet(table, revision, pause)) {
          write(next, line);
          written += line.length;
        }
        const base = written;
        for (const changes of meanwhile) {
          const line = lineOf({ ...encoded(changes), step: "change" });
          write(next, line);
          written += line.length;
        }
        fsyncSync(next);
        renameSync(fresh, path);
        if (file !== null) closeSync(file);
        file = next;
        baseBytes = base;
        bytes = written;
        counters.rewrites += 1;
      } catch (error) {
        closeSync(next);
        rmSync(fresh, { force: true });
        throw error;
      } finally {
        meanwhile = null;
      }
    },
    close() {
      if (file !== null) closeSync(file);
      file = null;
    },
  };
}

function openExisting(path: string): number | null {
  try {
    return openSync(path, "r+");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** As they stand in a line. */
interface Line {
  /** first: the start of a whole set; more: its rest; last: its end; change: a change to it. */
  readonly step: "first" | "more" | "last" | "change";
  readonly revision: number;
  readonly plans: readonly Plan[];
  readonly puts: readonly LineKey[];
  /** base64 */
  readonly removals: readonly string[];
}

/** Digest in base64, id, account, name of the plan, and what narrows it: end, networks, limit. */
type LineKey = readonly [string, string, string, string, LineRestriction | null];
type LineRestriction = readonly [number | null, readonly string[] | null, number, number];

async function* wholeSet(
  table: KeyTable,
  revision: number,
  pause: () => Promise<void>,
): AsyncGenerator<Buffer> {
  const plans = new Map<string, Plan>();
  const empty = { revision, plans: [], puts: [], removals: [] };
  let puts: LineKey[] = [];
  yield lineOf({ ...empty, step: "first" });
  for (const row of table.rows()) {
    plans.set(row.plan.name, row.plan);
    puts.push(encodedKey(row));
    if (puts.length < LINE_KEYS) continue;
    yield lineOf({ ...empty, plans: [...plans.values()], puts, step: "more" });
    puts = [];
    plans.clear();
    await pause();
  }
  yield lineOf({ ...empty, plans: [...plans.values()], puts, step: "last" });
}

function encoded({ revision, plans, puts, removals }: KeyChanges): Omit<Line, "step"> {
  return {
    revision,
    plans,
    puts: puts.map(encodedKey),
    removals: removals.map((sha256) => sha256.toString("base64")),
  };
}

function encodedKey({ sha256, keyId, account, plan, restriction }: StoredKey): LineKey {
  const { expiresUnixMs = null, networks = null, limit = null } = restriction ?? {};
  const narrowed: LineRestriction | null =
    restriction === null
      ? null
      : [expiresUnixMs, networks?.ranges ?? null, limit?.ratePerSecond ?? 0, limit?.burst ?? 0];
  return [sha256.toString("base64"), keyId, account, plan.name, narrowed];
}

function lineOf(line: Line): Buffer {
  const text = JSON.stringify(line);
  return Buffer.from(`${checksum(text)} ${text}\n`);
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}

interface Found {
  readonly revision: number | null;
  readonly size: number;
  /** Up to the end of the last line that holds. */
  readonly bytes: number;
  readonly baseBytes: number;
}

function readInto(file: number, table: KeyTable, counters: { linesRead: number }): Found {
  const rebuild = table.begin();
  const plans = new Map<string, Plan>();
  let revision: number | null = null;
  let [bytes, baseBytes, size] = [0, 0, 0];
  let isWhole = false;
  let holds = true;
  for (const { text, end } of linesOf(file, (total) => (size = total))) {
    if (!holds) continue;
    const line = text === null ? null : parsedLine(text);
    if (line === null || (bytes === 0) !== (line.step === "first")) {
      holds = false;
      continue;
    }
    for (const plan of line.plans) plans.set(plan.name, plan);
    if (isWhole) applyTo(table, line, plans);
    else for (const key of line.puts) rebuild.put(decodedKey(key, plans));
    if (line.step === "last") {
      rebuild.finish();
      isWhole = true;
      baseBytes = end;
    }
    if (isWhole) revision = line.revision;
    bytes = end;
    counters.linesRead += 1;
  }
  return { revision, size, bytes, baseBytes };
}

function applyTo(table: KeyTable, line: Line, plans: ReadonlyMap<string, Plan>): void {
  for (const plan of line.plans) table.setPlan(plan);
  for (const sha256 of line.removals) table.remove(Buffer.from(sha256, "base64"));
  for (const key of line.puts) table.put(decodedKey(key, plans));
}

function decodedKey(key: LineKey, plans: ReadonlyMap<string, Plan>): StoredKey {
  const [digest, keyId, account, planName, narrowed] = key;
  const plan = plans.get(planName);
  if (plan === undefined) throw new RangeError(`the key journal names no plan ${planName}`);
  return { sha256: Buffer.from(digest, "base64"), keyId, account, plan, restriction: of(narrowed) };
}

function of(narrowed: LineRestriction | null): StoredKey["restriction"] {
  if (narrowed === null) return null;
  const [expiresUnixMs, ranges, ratePerSecond, burst] = narrowed;
  const networks = ranges === null ? null : networksOf(ranges);
  return { expiresUnixMs, networks, limit: burst === 0 ? null : { ratePerSecond, burst } };
}

/** What a line says, null when it was not written whole. */
function parsedLine(text: string): Line | null {
  const json = text.slice(CHECKSUM_CHARS + 1);
  if (text.slice(0, CHECKSUM_CHARS) !== checksum(json)) return null;
  // Its checksum says that this module wrote it.
  return JSON.parse(json) as Line;
}

const CHECKSUM_CHARS = 8;

/** The file's lines with the place where each ends; a last piece without an end has text null. */
function* linesOf(
  file: number,
  onSize: (bytes: number) => void,
): Generator<{ readonly text: string | null; readonly end: number }> {
  let rest = Buffer.alloc(0);
  let place = 0;
  let size = 0;
  for (;;) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    const count = readSync(file, chunk, 0, CHUNK_BYTES, size);
    size += count;
    onSize(size);
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

const LF = 10;
