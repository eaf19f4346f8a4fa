/**
 * How many connections of clients this process has files for. Each is an open file, and so is all
 * that the edge needs besides: the database, the node, `/metrics`. At the system's limit none of
 * those can be opened any more, and the HTTP thread turns for ever over a connection that it cannot
 * take. Node raises the soft limit to the hard one when it starts.
 */

import { readFileSync } from "node:fs";
import { EDGE_FILES_MAX, WORKER_FILES } from "./core/limits.ts";
import type { Log } from "./core/log.ts";

/**
 * `http.connections`, or less where the system's limit does not allow so many beside the worker
 * threads; then logged.
 */
export function connectionsWithin(
  wanted: number,
  { workers, log }: { readonly workers: number; readonly log: Log },
): number {
  const files = filesMaxOf(systemLimits());
  const most = Math.max(files - EDGE_FILES_MAX - workers * WORKER_FILES, Math.floor(files / 2));
  if (wanted <= most) return wanted;
  log.info(
    { wanted, connections: most, files },
    "http.connections is more than the limit of open files allows (ulimit -n): fewer are taken",
  );
  return most;
}

/** The soft limit of a text like `/proc/self/limits`; infinite where it tells of none. */
export function filesMaxOf(limits: string): number {
  const found = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return found === undefined ? Number.POSITIVE_INFINITY : Number(found);
}

function systemLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    // Another system than Linux, which tells nothing here.
    return "";
  }
}
