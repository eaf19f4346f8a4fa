/**
 * How many client connections this process has file descriptors for. Each is an open file, and so
 * is everything else that the edge needs: the database, the node, `/metrics`. At the system's limit
 * none of those can be opened, and the HTTP thread spins on a connection that it cannot accept.
 * Node raises the soft limit to the hard one when it starts.
 */
import { readFileSync } from "node:fs";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { EDGE_FILES_MAX, UPSTREAM_CONNECTIONS_MAX, WORKER_FILES } from "./limits.ts";

export interface FilesUse {
  readonly workers: number;
  /** Whether there are ingress threads, which proxy requests. */
  readonly hasIngressThreads: boolean;
  readonly log: Log;
}

/** Connections that fit the limit. */
export interface Connections {
  /** Of clients. */
  readonly clients: number;
  /** Of ingress threads to their upstream server; 0 without ingress threads. */
  readonly upstreamConnections: number;
}

/**
 * `http.connections`, or less if the system's limit does not allow that number besides the worker
 * threads and the proxy connections; then logged.
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
  log.warn(
    { wanted, connections: max, files },
    `http.connections is ${wanted}, and the limit of open files (ulimit -n) is ${files}: ` +
      `the edge takes ${max} connections`,
  );
  return { clients: max, upstreamConnections };
}

/**
 * With fewer files than an edge itself may need it would end while it starts or serves. Cheap to
 * import, because at such a limit not even the modules of an edge can be read.
 *
 * @throws SetupError
 */
export function requireOpenFiles(limits: string = systemLimits()): void {
  const files = filesMaxOf(limits);
  if (files >= EDGE_FILES_MAX) return;
  throw new SetupError(
    `open files: this process may open ${files}, an edge needs ${EDGE_FILES_MAX} and one for ` +
      "each connection: `ulimit -n 65536`, `LimitNOFILE=65536` in the unit, or " +
      "`--ulimit nofile=65536` of Docker",
  );
}

/** Both ends of a proxy connection belong to this process. */
export const FILES_PER_UPSTREAM_CONNECTION = 2;
/** At most one proxy connection per this many files. */
const UPSTREAM_DIVISOR = 4;

/** The soft limit in a text like `/proc/self/limits`; infinite if it states none. */
export function filesMaxOf(limits: string): number {
  const found = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return found === undefined ? Number.POSITIVE_INFINITY : Number(found);
}

export function systemLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    // Not Linux: the limit is unknown.
    return "";
  }
}
