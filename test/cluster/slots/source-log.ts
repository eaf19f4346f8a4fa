/** Which sources of slots delivered lately, from the events that a sink received. */

import type { SlotSource } from "../../../src/cluster/ports.ts";
import { type Clock, NS_PER_MS } from "../../../src/core/clock.ts";

const BEST_FIRST = ["slotsUpdates", "slot", "polling"] as const;

/** A source that delivered nothing for longer than `silenceMs` does not count. */
export function createSourceLog(clock: Clock, silenceMs: number) {
  const eventNs = new Map<SlotSource, number>();
  const ageMs = (source: SlotSource): number =>
    (clock.nowNs() - (eventNs.get(source) ?? Number.NEGATIVE_INFINITY)) / NS_PER_MS;
  return {
    note: (source: SlotSource) => void eventNs.set(source, clock.nowNs()),
    /** The best one that delivers; `none` if none does. */
    best: () => BEST_FIRST.find((source) => ageMs(source) <= silenceMs) ?? "none",
    /** Milliseconds since the last event of any source. */
    eventAgeMs: () => Math.min(...BEST_FIRST.map(ageMs)),
  };
}
