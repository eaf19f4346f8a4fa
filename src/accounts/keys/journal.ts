/**
 * The last good keys on disk, so that an edge which starts while the database is down serves those
 * whom it knew, and refuses keys that were revoked a moment before it was killed.
 *
 * The file is a whole set of keys followed by every change since. Each line is checked by itself
 * and names the set that it changes; what is behind the first line that does not hold or does not
 * follow is cut off. A file that missed a change, because the disk was full or the whole set was
 * read anew, gets removals alone until it is written anew: its keys are old then, but none of them
 * is a revoked one. Digests and limits stand in it, never a key; only its owner can read it.
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
   * Fills the table with what the file holds, and cuts off what was not written whole.
   *
   * @returns the revision, null where there is no file or no whole set of keys in it
   */
  load(table: KeyTable): Revision | null;
  /**
   * Adds a change. It is on disk, as far as a killed process goes, when this returns.
   *
   * @throws Error of the file system; the file is behind from then on
   */
  append(changes: KeyChanges): void;
  /**
   * Writes the table anew as the whole set, in steps between which `pause` is awaited; changes that
   * come meanwhile are kept, and a rewriting that is under way is given up for this one. The old
   * file stays until the new one is whole.
   */
  rewrite(table: KeyTable, revision: Revision, pause: () => Promise<void>): Promise<void>;
  /** Whether it has to be written anew: it missed a change, or most of it is changes. */
  readonly needsRewrite: boolean;
  close(): void;
  readonly counters: KeyJournalCounters;
}

export interface KeyJournalCounters {
  linesRead: number;
  bytesCut: number;
  appends: number;
  /** Appends of which only the removals could be kept. */
  behind: number;
  rewrites: number;
}

/** Keys of one line; small, because a line is made between two requests. */
const LINE_KEYS = 100;
/** Removals of one line, 47 bytes each: far below the longest line that is read. */
const LINE_REMOVALS = 50_000;
const LONG_BYTES_MIN = 1024 * 1024;

/** A rewriting that is under way. */
interface Job {
  /** Changes that came since it began. */
  readonly meanwhile: KeyChanges[];
  /** Another one took its place. */
  isVoid: boolean;
  done: Promise<void>;
}

/** The file that is written to. */
interface Open {
  readonly file: number;
  /** Bytes of the whole set, and of everything. */
  readonly baseBytes: number;
  bytes: number;
  /** What it has whole. */
  revision: Revision;
}

const fsyncLater = promisify(fsync);

/** The file is made on the first write. @throws Error of the file system where it cannot be read */
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
          // It was to be written anew, and still is, whatever it holds.
          isBehind = true;
          throw error;
        })
        .finally(() => {
          if (job === mine) job = null;
        });
      // Whoever waits for its end alone is not told of its failure.
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

/** Whether the open file is the one of this name: another process may have put its own there. */
function isStill(file: number, path: string): boolean {
  return fstatSync(file).ino === statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Writes all of it or throws: the kernel takes a part where the disk is about to be full. */
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
 * One change as lines that can be read again: very many removals, those of a whole account, take
 * several, of which only the last leads to the new revision.
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
  /** Up to the end of the last line that holds. */
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

/** Whether a line may stand at this place; `revision` is null before the end of the whole set. */
function fits(line: Line, bytes: number, revision: Revision | null): boolean {
  if (revision !== null) return line.step === "change" && isSameRevision(line.since, revision);
  return (bytes === 0) === (line.step === "first") && line.step !== "change";
}

function applyTo(table: KeyTable, line: Line, plans: ReadonlyMap<string, Plan>): void {
  for (const plan of line.plans) table.setPlan(plan);
  for (const sha256 of line.removals) table.remove(Buffer.from(sha256, "base64"));
  for (const key of line.puts) table.put(decodedKey(key, plans));
}
