/**
 * Lowers the priority of a background thread. A thread that is woken preempts the running one,
 * which on a busy machine is often the one that serves clients; with a lower priority it does not,
 * and still gets a tenth of a processor when all are busy.
 *
 * Decision: docs/decisions/0016-background-threads-have-lower-priority.md
 */

import { getPriority, setPriority } from "node:os";

/** Steps below the priority before; as in native/src/sync/thread_priority.rs. sched(7), 2026-11. */
const NICE = 10;
const NICE_MAX = 19;

/** Applies to the calling thread. Has no effect where the system does not support that. */
export function lowerPriority(): void {
  // Elsewhere it would apply to the process.
  if (process.platform !== "linux") return;
  setPriority(Math.min(NICE_MAX, getPriority() + NICE));
}
