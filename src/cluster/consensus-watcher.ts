/**
 * Reads which consensus the cluster runs, until it is Alpenglow.
 *
 * A cluster that migrated has a genesis certificate of Alpenglow (SIMD-0384), which stays. A node
 * older than Agave 4.3 does not know the method, and a provider may refuse it. Then the slots tell:
 * with Tower BFT the finalized slot is at least 31 below the confirmed one, and with Alpenglow both
 * are the same. A node that starts also reports them close to each other for some
 * seconds, so Alpenglow takes two such polls in a row, and each further poll decides anew. The
 * result is forgotten when the address leads to another cluster.
 */

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { BackOffOptions } from "./back-off.ts";
import type { ClusterCounters } from "./counters.ts";
import {
  CONSENSUS_AGAIN_MS,
  CONSENSUS_CLOSE_POLLS,
  CONSENSUS_CLOSE_SLOTS,
  CONSENSUS_GAP_MS,
  CONSENSUS_POLL_MS,
} from "./limits.ts";
import { createPollLoop, warnAtFirst } from "./polling-loop.ts";
import type { Consensus } from "./ports.ts";
import type { Rpc } from "./rpc/rpc.ts";

export interface ConsensusWatcherDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "consensus" | "finalizedLag">;
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
  /** Whether the slots tell it, of a node that does not know the method. */
  let isInferred = false;
  /** Polls in a row in which the finalized slot was close to the confirmed one. */
  let closePolls = 0;

  function set(now: Consensus): void {
    if (now === consensus) return;
    consensus = now;
    log.info({ consensus, isInferred }, "the cluster's consensus");
    onChange(now);
  }

  async function infer(): Promise<void> {
    if (!isOldReported) log.info({}, "the node does not report the cluster's consensus");
    isOldReported = true;
    // What a node said that knows the method is certain.
    if (consensus !== "unknown" && !isInferred) return;
    const isClose = (await rpc.finalizedLag()) <= CONSENSUS_CLOSE_SLOTS;
    closePolls = isClose ? closePolls + 1 : 0;
    isInferred = closePolls >= CONSENSUS_CLOSE_POLLS;
    set(isInferred ? "alpenglow" : "unknown");
  }

  const loop = createPollLoop({
    clock,
    backOff,
    async poll() {
      if (consensus === "alpenglow" && !isInferred) return CONSENSUS_POLL_MS;
      counters.consensusPolls += 1;
      const now = await rpc.consensus();
      if (now === "unknown") {
        await infer();
        return closePolls === 1 ? CONSENSUS_AGAIN_MS : CONSENSUS_POLL_MS;
      }
      isInferred = false;
      set(now);
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
      isInferred = false;
      closePolls = 0;
      loop.pollNow(CONSENSUS_GAP_MS);
    },
  };
}
