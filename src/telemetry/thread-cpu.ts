/**
 * The processor time of each thread of this process, read from Linux's `/proc` when metrics are
 * scraped: about 10 us a thread. A system without it has no values.
 *
 * A thread is known by its name: the main thread by its id, the others by the names that this
 * project gives them. Threads of one kind are numbered from 0; a thread that replaces an ended one
 * takes its number, and its time continues the sum, so that sums never decrease. All other threads,
 * such as those of the JavaScript engine, are counted together.
 */

import { readdirSync, readFileSync } from "node:fs";
import { THREADS_READ_MAX } from "./limits.ts";

export interface ThreadCpu {
  readonly thread: string;
  readonly number: number;
  /** In user and system mode since the process began, as far as it was read. */
  readonly seconds: number;
}

/** By name: `native/src` gives the first three, `src/runtime/thread-name.ts` the others. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ["td-ingress", "ingress"],
  ["td-io", "io"],
  ["td-keys", "keys"],
  ["td-cluster", "cluster"],
  ["td-decode", "decode"],
]);
const OTHER = "other";
/** Linux reports these times in hundredths of a second on every platform. proc(5), 2026-11. */
const TICKS_PER_S = 100;

interface Task {
  thread: string;
  number: number;
  ticks: number;
}

/** A line of `/proc/self/task/N/stat`. */
interface Stat {
  readonly name: string;
  readonly ticks: number;
  /** When the thread began: ids are used again. */
  readonly started: string;
}

export interface ThreadCpuReader {
  /** All threads so far, ended ones included. */
  read(): readonly ThreadCpu[];
}

/** `folder` is that of the threads of the process `pid`. */
export function createThreadCpuReader(
  folder = "/proc/self/task",
  pid = process.pid,
): ThreadCpuReader {
  /** The threads that lived at the last read, by id and start. */
  let tasks: ReadonlyMap<string, Task> = new Map();
  const totals = new Map<string, { thread: string; number: number; ticks: number }>();

  function count({ thread, number }: Task, ticks: number): void {
    const key = `${thread} ${number}`;
    const total = totals.get(key);
    if (total === undefined) totals.set(key, { thread, number, ticks });
    else total.ticks += ticks;
  }

  function readTasks(): void {
    const live = new Map<string, { stat: Stat; thread: string }>();
    for (const id of idsIn(folder)) {
      const stat = statOf(`${folder}/${id}/stat`);
      if (stat === null) continue;
      const thread = Number(id) === pid ? "main" : (KINDS.get(stat.name) ?? OTHER);
      live.set(`${id} ${stat.started}`, { stat, thread });
    }
    const next = new Map<string, Task>();
    for (const [key, { thread }] of live) {
      const known = tasks.get(key);
      if (known?.thread === thread) next.set(key, known);
    }
    for (const [key, { stat, thread }] of live) {
      const task = next.get(key) ?? { thread, number: freeNumber(next, thread), ticks: 0 };
      // One that has been named since continues as another.
      const before = tasks.get(key)?.ticks ?? 0;
      count(task, stat.ticks - before);
      task.ticks = stat.ticks;
      next.set(key, task);
    }
    tasks = next;
  }

  return {
    read() {
      readTasks();
      return [...totals.values()].map(({ thread, number, ticks }) => ({
        thread,
        number,
        seconds: ticks / TICKS_PER_S,
      }));
    },
  };
}

/** The lowest number that no thread of this kind has; 0 for all that are counted together. */
function freeNumber(tasks: ReadonlyMap<string, Task>, thread: string): number {
  if (thread === OTHER) return 0;
  const taken = new Set<number>();
  for (const task of tasks.values()) if (task.thread === thread) taken.add(task.number);
  let number = 0;
  while (taken.has(number)) number += 1;
  return number;
}

function idsIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).slice(0, THREADS_READ_MAX);
  } catch {
    return [];
  }
}

/** Null for a thread that has ended, or a line in another form. */
function statOf(path: string): Stat | null {
  try {
    const line = readFileSync(path, "latin1");
    // The name, in brackets, may itself hold brackets and spaces.
    const [start, end] = [line.indexOf("("), line.lastIndexOf(")")];
    // From the third field on: 14 and 15 are the times in user and system mode, 22 is the start.
    const fields = line.slice(end + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    const started = fields[19];
    if (start < 0 || started === undefined || !Number.isSafeInteger(ticks)) return null;
    return { name: line.slice(start + 1, end), ticks, started };
  } catch {
    return null;
  }
}
