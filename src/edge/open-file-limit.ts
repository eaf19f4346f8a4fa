/**
 * How many connections of clients this process has files for. Each is an open file, and so is all
 * that the edge needs besides: the database, the node, `/metrics`. At the system's limit none of
 * those can be opened any more, and the HTTP thread turns for ever over a connection that it cannot
 * take. Node raises the soft limit to the hard one when it starts.
 */

import { readFileSync } from "node:fs";
import type { Log } from "../core/log.ts";
import { EDGE_FILES_MAX, UPSTREAM_CONNECTIONS_MAX, WORKER_FILES } from "./limits.ts";

export interface FilesUse {
  readonly workers: number;
  /** Whether there are fronts, which relay requests. */
  readonly hasIngressThreads: boolean;
  readonly log: Log;
}

/** What there are files for. */
export interface Connections {
  /** Clients'. */
  readonly clients: number;
  /** Fronts', to the server behind them; 0 without fronts. */
  readonly upstreamConnections: number;
}

/**
 * `http.connections`, or less where the system's limit does not allow so many beside the worker
 * threads and the relays; then logged.
 */
export function connectionsWithin(
  wanted: number,
  { workers, hasIngressThreads, log }: FilesUse,
): Connections {
  const files = filesMaxOf(systemLimits());
  const left = Math.max(files - EDGE_FILES_MAX - workers * WORKER_FILES, Math.floor(files / 2));
  const upstreamConnections = hasIngressThreads
    ? Math.min(UPSTREAM_CONNECTIONS_MAX, Math.floor(left / UPSTREAM_DIVISOR))
    : 0;
  const max = left - FILES_PER_UPSTREAM_CONNECTION * upstreamConnections;
  if (wanted <= max) return { clients: wanted, upstreamConnections };
  log.info(
    { wanted, connections: max, files },
    "http.connections is more than the limit of open files allows (ulimit -n): fewer are taken",
  );
  return { clients: max, upstreamConnections };
}

/** Both ends of a relay are this process's. */
const FILES_PER_UPSTREAM_CONNECTION = 2;
/** One relay for so many files, at most. */
const UPSTREAM_DIVISOR = 4;

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
