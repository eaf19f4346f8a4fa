/**
 * Processor time of the threads of a process, by name, from /proc: Linux only. The kernel counts in
 * nanoseconds, so a few seconds measure a fraction of a percent.
 */

import { readdirSync, readFileSync } from "node:fs";

export interface ThreadTime {
  readonly name: string;
  /** Processor time so far, in milliseconds. */
  readonly cpuMs: number;
  /** How often it was scheduled. */
  readonly turns: number;
}

/** By thread id. */
export type ThreadTimes = ReadonlyMap<string, ThreadTime>;

/** The threads that live now. */
export function threadTimes(pid: number): ThreadTimes {
  const folder = `/proc/${pid}/task`;
  const times = new Map<string, ThreadTime>();
  for (const id of readdirSync(folder)) {
    try {
      const [onNs = 0, , turns = 0] = readFileSync(`${folder}/${id}/schedstat`, "utf8")
        .split(" ")
        .map(Number);
      const name = readFileSync(`${folder}/${id}/comm`, "utf8").trim();
      times.set(id, { name, cpuMs: onNs / 1e6, turns });
    } catch {
      // The thread ended between the listing and the reading.
    }
  }
  return times;
}

export interface ThreadRate {
  readonly name: string;
  /** Milliseconds of processor time per second. */
  readonly cpu_ms_per_s: number;
  /** Times scheduled per second. */
  readonly wakes_per_s: number;
}

/** What each thread used between two samples, the busiest first. */
export function ratesBetween(
  before: ThreadTimes,
  after: ThreadTimes,
  seconds: number,
): readonly ThreadRate[] {
  const rates: ThreadRate[] = [];
  for (const [id, { name, cpuMs, turns }] of after) {
    const then = before.get(id) ?? { cpuMs: 0, turns: 0 };
    rates.push({
      name,
      cpu_ms_per_s: (cpuMs - then.cpuMs) / seconds,
      wakes_per_s: (turns - then.turns) / seconds,
    });
  }
  return rates.sort((a, b) => b.cpu_ms_per_s - a.cpu_ms_per_s);
}
