/**
 * Reads which consensus the cluster runs, until it is Alpenglow.
 *
 * A cluster that migrated has a genesis certificate of Alpenglow (SIMD-0384), which stays. A node
 * older than Agave 4.3 does not know the method, which says nothing about the cluster. The result
 * is forgotten when the address leads to another cluster.
 */

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { BackOffOptions } from "./back-off.ts";
import type { ClusterCounters } from "./counters.ts";
import { CONSENSUS_GAP_MS, CONSENSUS_POLL_MS } from "./limits.ts";
import { createPollLoop, warnAtFirst } from "./polling-loop.ts";
import type { Consensus } from "./ports.ts";
import type { Rpc } from "./rpc/rpc.ts";

export interface ConsensusWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "consensus">;
  readonly counters: Pick<ClusterCounters, "consensusPolls" | "consensusFailures">;
  readonly backOff: BackOffOptions;
  /** The result changed. Must not throw. */
  readonly onChange: (consensus: Consensus) => void;
}

export interface ConsensusWatcher {
  start(): void;
  stop(): void;
  /** `unknown` before the first answer, and with a node that cannot say. */
  readonly consensus: Consensus;
  /** Reads it soon, because the cluster may migrate now. */
  pollNow(): void;
  /** The address leads to another cluster. */
  forget(): void;
}

export function createConsensusWatcher(deps: ConsensusWatcherDeps): ConsensusWatcher {
  const { clock, log, rpc, counters, backOff, onChange } = deps;
  let consensus: Consensus = "unknown";
  let isOldReported = false;

  function learn(now: Consensus): void {
    if (now === "unknown") {
      if (!isOldReported) log.info({}, "the node does not report the cluster's consensus");
      isOldReported = true;
    } else if (now !== consensus) {
      consensus = now;
      log.info({ consensus }, "the cluster's consensus");
      onChange(now);
    }
  }

  const loop = createPollLoop({
    clock,
    backOff,
    async poll() {
      if (consensus === "alpenglow") return CONSENSUS_POLL_MS;
      counters.consensusPolls += 1;
      learn(await rpc.consensus());
      return CONSENSUS_POLL_MS;
    },
    onFailure: warnAtFirst(log, "the cluster's consensus could not be read", () => {
      counters.consensusFailures += 1;
    }),
  });

  return {
    start: loop.start,
    stop: loop.stop,
    get consensus() {
      return consensus;
    },
    pollNow: () => loop.pollNow(CONSENSUS_GAP_MS),
    forget() {
      if (consensus !== "unknown") onChange("unknown");
      consensus = "unknown";
      loop.pollNow(CONSENSUS_GAP_MS);
    },
  };
}
