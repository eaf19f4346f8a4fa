/** What a front counts of its clients, by the names that its desk has for it. */

import { REFUSALS, type RefusalReason } from "../core/errors.ts";
import { figuresMemory, sharedFigures } from "../core/shared-figures.ts";
import type { DeskCounters, DeskFigures } from "../ingress/desk.ts";

export const DESK_NAMES = [
  "connections",
  "connectionsRefused",
  "requests",
  "requestsOpen",
  "accepted",
  "aborted",
  "expired",
  "cut",
  "bodilessCut",
  "answersDeferred",
  "answersUnread",
  "thrown",
] as const satisfies readonly (keyof DeskCounters)[];

// The table's keys, which `Object.keys` answers as plain strings.
export const REFUSAL_NAMES = Object.keys(REFUSALS) as readonly RefusalReason[];

export function frontFiguresMemory(): SharedArrayBuffer {
  return figuresMemory(DESK_NAMES.length + REFUSAL_NAMES.length);
}

/** The view of either side; the front writes, the main thread reads. */
export function frontFigures(memory: SharedArrayBuffer): DeskFigures {
  return {
    counters: sharedFigures(DESK_NAMES, memory),
    refusals: sharedFigures(REFUSAL_NAMES, memory, DESK_NAMES.length),
  };
}
