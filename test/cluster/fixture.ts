/** A cluster client's dependencies for tests. */

import type { ClusterClientDeps } from "../../src/cluster/cluster-client.ts";
import { ClusterCounters } from "../../src/cluster/counters.ts";
import type { ClusterSink, RouterSink } from "../../src/cluster/ports.ts";
import type { Clock } from "../../src/core/clock.ts";

/** A sink that passes on to a router what concerns it, and otherwise has these methods. */
export function sinkOf(router: Partial<RouterSink>, over: Partial<ClusterSink> = {}): ClusterSink {
  return {
    slotEvent: (kind, slot, source) => router.slotEvent?.(kind, slot, source),
    slotTimeHint: (slotTimeMs) => router.slotTimeHint?.(slotTimeMs),
    setEpoch: (epoch) => router.setEpoch?.(epoch) ?? true,
    forgetEpochs: () => router.forgetEpochs?.(),
    setContacts: (contacts) => router.setContacts?.(contacts),
    setDelinquent: (identities) => router.setDelinquent?.(identities),
    setStakes: () => undefined,
    setReporting: () => undefined,
    setConsensus: () => undefined,
    setConfirmationStalled: () => undefined,
    setQuietRange: () => undefined,
    setHeight: () => undefined,
    addBlockhash: () => undefined,
    blockhashesRead: () => undefined,
    processed: () => undefined,
    confirmed: () => undefined,
    forgetBanks: () => undefined,
    ...over,
  };
}

export function clientDeps(
  clock: Clock,
  sink: ClusterSink,
  openGeyser: ClusterClientDeps["openGeyser"] = null,
): ClusterClientDeps {
  return {
    ...{ clock, coalescedClock: clock, sink, openGeyser },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    busy: () => true,
    counters: new ClusterCounters(),
  };
}
