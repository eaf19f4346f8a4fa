/** What the watchers of this folder need: which RPC methods they call and which sinks they fill. */

import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { BackOffOptions } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import type { ClusterSink } from "../ports.ts";
import type { Rpc } from "../rpc/rpc.ts";

export interface WatcherDeps<Method extends keyof Rpc, Setter extends keyof ClusterSink> {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, Method>;
  readonly sink: Pick<ClusterSink, Setter>;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
}

export interface WatcherOptions {
  /** Time from one poll to the next, in milliseconds. */
  readonly intervalMs: number;
}
