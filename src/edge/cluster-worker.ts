/**
 * The cluster thread of an edge that is about to start: it loads its modules while the main thread
 * loads those of the edge.
 */

import { type ClusterWorker, createClusterWorker } from "../cluster/cluster-worker.ts";
import type { ClusterThreadOptions } from "../cluster/thread/messages.ts";
import type { Config } from "../config/config.ts";

export function clusterOptionsOf({ cluster, tip }: Config): ClusterThreadOptions {
  return { ...cluster, accounts: tip.accounts };
}

export function startClusterWorker(config: Config): ClusterWorker {
  return createClusterWorker(clusterOptionsOf(config));
}
