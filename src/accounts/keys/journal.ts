/**
 * The last valid keys on disk, so that an edge that starts while the database is unavailable serves
 * known keys and rejects keys revoked just before it was killed.
 *
 * The file is a full set of keys followed by every change since. Each line is checked separately
 * and names the set that it changes; everything after the first invalid or non-consecutive line is
 * cut off. A file that missed a change, because the disk was full or a full read replaced the set,
 * receives only removals until it is rewritten: its keys are then old, but none is a revoked one.
 * The file contains digests and limits, never a key; only its owner can read it.
 */

import {
  closeSync,
  fstatSync,
  fsync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { codeOf } from "../../core/errors.ts";
import {
  decodedKey,
  type KeyChanges,
  type Line,
  lineOf,
  linesOf,
  parsedLine,
} from "./journal-line.ts";
import type { Plan, StoredKey } from "./key.ts";
import { isSameRevision, type Revision } from "./revision.ts";
import type { KeyTable } from "./table.ts";

export interface KeyJournal {
  /**
   * Loads the file into the table and cuts off incomplete lines.
   *
   * @returns the revision, null if there is no file or no complete set of keys in it
   */
  load(table: KeyTable): Revision | null;
  /**
   * Appends a change. When this returns, it survives a killed process.
   *
   * @throws Error of the file system; the file is then behind
   */
  append(changes: KeyChanges): void;
  /**
   * Rewrites the file as a full set, awaiting `pause` between steps; changes that arrive meanwhile
   * are kept, and a rewrite in progress is cancelled. The old file stays until the new one is
   * complete.
   */
  rewrite(table: KeyTable, revision: Revision, pause: () => Promise<void>): Promise<void>;
  /** Whether a rewrite is due: the file missed a change, or consists mostly of changes. */
  readonly needsRewrite: boolean;
  close(): void;
  readonly counters: KeyJournalCounters;
}

export interface KeyJournalCounters {
  linesRead: number;
  bytesCut: number;
  appends: number;
  /** Appends of which only the removals were written. */
  behind: number;
  rewrites: number;
}

/** Keys per line; few, because a line is serialized between two requests. */
const LINE_KEYS = 100;
/** Removals per line, 47 bytes each: far below the maximum line. */
const LINE_REMOVALS = 50_000;
const LONG_BYTES_MIN = 1024 * 1024;

/** A rewrite in progress. */
interface Job {
  /** Changes that arrived since it began. */
  readonly meanwhile: KeyChanges[];
  /** Replaced by a later rewrite. */
  isVoid: boolean;
  done: Promise<void>;
}

/** The file being written. */
interface Open {
  readonly file: number;
  /** Bytes of the full set, and of the file. */
  readonly baseBytes: number;
  bytes: number;
  /** The last complete revision in it. */
  revision: Revision;
}

const fsyncLater = promisify(fsync);

/** The first write creates the file. @throws Error of the file system if it cannot be read */
export function createKeyJournal(path: string): KeyJournal {
  const counters = { linesRead: 0, bytesCut: 0, appends: 0, behind: 0, rewrites: 0 };
  let open: Open | null = null;
  let isBehind = false;
  let job: Job | null = null;

  function appendTo(to: Open, changes: KeyChanges): void {
    if (!isStill(to.file, path)) throw new Error(`${path} is not the file that was written to`);
    const follows = isSameRevision(to.revision, changes.since);
    const { revision } = follows ? changes : to;
    const kept = follows
      ? changes
      : { since: revision, revision, plans: [], puts: [], removals: changes.removals };
    if (!follows) {
      isBehind = true;
      counters.behind += 1;
      if (kept.removals.length === 0) return;
    }
    for (const line of changeLines(kept)) {
      writeWhole(to.file, line, to.bytes);
      to.bytes += line.length;
    }
    to.revision = revision;
  }

  async function writeAnew(
    mine: Job,
    table: KeyTable,
    revision: Revision,
    pause: () => Promise<void>,
  ): Promise<void> {
    if (mine.isVoid) return;
    const fresh = `${path}.new`;
    mkdirSync(dirname(path), { recursive: true });
    const file = openSync(fresh, "w+", 0o600);
    try {
      let bytes = 0;
      const add = (line: Buffer): void => {
        writeWhole(file, line, bytes);
        bytes += line.length;
      };
      for (const line of wholeSet(table, revision)) {
        add(line);
        await pause();
        if (mine.isVoid) break;
      }
      if (!mine.isVoid) await fsyncLater(file);
      if (mine.isVoid) {
        closeSync(file);
        return;
      }
      const baseBytes = bytes;
      for (const changes of mine.meanwhile) for (const line of changeLines(changes)) add(line);
      renameSync(fresh, path);
      if (open !== null) closeSync(open.file);
      const reached = mine.meanwhile.at(-1)?.revision ?? revision;
      open = { file, baseBytes, bytes, revision: reached };
      isBehind = false;
      counters.rewrites += 1;
    } catch (error) {
      closeSync(file);
      rmSync(fresh, { force: true });
      throw error;
    }
  }

  return {
    counters,
    get needsRewrite() {
      if (open === null || isBehind) return true;
      return open.bytes - open.baseBytes > Math.max(open.baseBytes, LONG_BYTES_MIN);
    },
    load(table) {
      const file = openExisting(path);
      if (file === null) return null;
      const found = readInto(file, table, counters);
      const { size } = fstatSync(file);
      if (found.bytes < size) {
        counters.bytesCut += size - found.bytes;
        ftruncateSync(file, found.bytes);
      }
      if (found.revision === null) {
        closeSync(file);
        return null;
      }
      const { bytes, baseBytes, revision } = found;
      open = { file, baseBytes, bytes, revision };
      return revision;
    },
    append(changes) {
      counters.appends += 1;
      job?.meanwhile.push(changes);
      if (open === null) return;
      try {
        appendTo(open, changes);
      } catch (error) {
        isBehind = true;
        throw error;
      }
    },
    rewrite(table, revision, pause) {
      const before = job;
      if (before !== null) before.isVoid = true;
      const mine: Job = { meanwhile: [], isVoid: false, done: Promise.resolve() };
      job = mine;
      const previous = before?.done ?? Promise.resolve();
      const whole = previous
        .then(() => writeAnew(mine, table, revision, pause))
        .catch((error: unknown) => {
          // A rewrite was due and still is, whatever the file contains.
          isBehind = true;
          throw error;
        })
        .finally(() => {
          if (job === mine) job = null;
        });
      // A caller that only waits for its end does not receive its failure.
      mine.done = whole.catch(() => undefined);
      return whole;
    },
    close() {
      if (job !== null) job.isVoid = true;
      if (open !== null) closeSync(open.file);
      open = null;
    },
  };
}

function openExisting(path: string): number | null {
  try {
    return openSync(path, "r+");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** Whether the open file still has this name: another process may have replaced it. */
function isStill(file: number, path: string): boolean {
  return fstatSync(file).ino === statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Writes everything or throws: the kernel writes a part when the disk is nearly full. */
function writeWhole(file: number, line: Buffer, place: number): void {
  for (let written = 0; written < line.length; ) {
    written += writeSync(file, line, written, line.length - written, place + written);
  }
}

function* wholeSet(table: KeyTable, revision: Revision): Generator<Buffer> {
  const empty: KeyChanges = { since: revision, revision, plans: [], puts: [], removals: [] };
  let puts: StoredKey[] = [];
  yield lineOf("first", empty);
  for (const row of table.rows()) {
    puts.push(row);
    if (puts.length < LINE_KEYS) continue;
    yield lineOf("more", { ...empty, puts });
    puts = [];
  }
  yield lineOf("last", { ...empty, puts });
}

/**
 * One change as readable lines: very many removals, those of a whole account, take several, of
 * which only the last sets the new revision.
 */
function* changeLines(changes: KeyChanges): Generator<Buffer> {
  const { since, removals } = changes;
  let start = 0;
  for (; removals.length - start > LINE_REMOVALS; start += LINE_REMOVALS) {
    const part = removals.slice(start, start + LINE_REMOVALS);
    yield lineOf("change", { since, revision: since, plans: [], puts: [], removals: part });
  }
  yield lineOf("change", { ...changes, removals: removals.slice(start) });
}

interface Found {
  readonly revision: Revision | null;
  /** Up to the end of the last valid line. */
  readonly bytes: number;
  readonly baseBytes: number;
}

function readInto(file: number, table: KeyTable, counters: { linesRead: number }): Found {
  const rebuild = table.startRebuild();
  const plans = new Map<string, Plan>();
  let revision: Revision | null = null;
  let [bytes, baseBytes] = [0, 0];
  for (const { text, end } of linesOf(file)) {
    const line = text === null ? null : parsedLine(text);
    if (line === null || !fits(line, bytes, revision)) break;
    for (const plan of line.plans) plans.set(plan.name, plan);
    if (revision !== null) applyTo(table, line, plans);
    else for (const key of line.puts) rebuild.put(decodedKey(key, plans));
    if (line.step === "last") {
      rebuild.finish();
      baseBytes = end;
    }
    if (line.step === "last" || revision !== null) revision = line.revision;
    bytes = end;
    counters.linesRead += 1;
  }
  return { revision, bytes, baseBytes };
}

/** Whether a line is valid at this position; `revision` is null before the end of the full set. */
function fits(line: Line, bytes: number, revision: Revision | null): boolean {
  if (revision !== null) return line.step === "change" && isSameRevision(line.since, revision);
  return (bytes === 0) === (line.step === "first") && line.step !== "change";
}

function applyTo(table: KeyTable, line: Line, plans: ReadonlyMap<string, Plan>): void {
  for (const plan of line.plans) table.setPlan(plan);
  for (const sha256 of line.removals) table.remove(Buffer.from(sha256, "base64"));
  for (const key of line.puts) table.put(decodedKey(key, plans));
}
