/**
 * Names the calling thread, as the engine names its own: `top -H`, `perf` and the metrics of each
 * thread's processor time show the name. Node leaves its worker threads without one.
 */

import { writeFileSync } from "node:fs";

/** As those of the native engine's threads, at most 15 characters. */
export type ThreadName = "td-cluster" | "td-decode";

/** Has no effect where the system does not support that. proc(5), `comm`, 2026-11. */
export function nameThread(name: ThreadName, folder = "/proc/thread-self"): void {
  try {
    writeFileSync(`${folder}/comm`, name);
  } catch {
    // Only the name is missing then.
  }
}
