/**
 * What a front counts, in memory that it shares with the main thread: of its clients, by the names
 * that the HTTP server's desk has for it, and of what it leaves to that. The front writes, the main
 * thread reads. `native/src/submit/counters.rs` has the same names in the same order.
 */

import { REFUSALS, type RefusalReason } from "../core/errors.ts";
import type { DeskCounters, DeskFigures } from "../http/request-tracker.ts";
import { type Figures, figuresMemory, sharedFigures } from "../runtime/shared-counters.ts";

export const DESK_NAMES = [
  "connections",
  "connectionsRefused",
  "connectionsCrowded",
  "connectionsSlow",
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

/**
 * Why a front leaves a request to the main thread: it has no pass for the key, the limit is used
 * up, no leader takes copies as they come, the books are behind, or anything else.
 */
export const RELAY_REASONS = ["key", "limit", "leaders", "books", "other"] as const;

export type RelayReason = (typeof RELAY_REASONS)[number];
export type Relayed = Readonly<Figures<RelayReason>>;

export interface FrontFigures extends DeskFigures {
  /** Requests that it left to the main thread, by why. */
  readonly relayed: Relayed;
}

const RELAYED_AT = DESK_NAMES.length + REFUSAL_NAMES.length;

export function frontFiguresMemory(): SharedArrayBuffer {
  return figuresMemory(RELAYED_AT + RELAY_REASONS.length);
}

export function frontFigures(memory: SharedArrayBuffer): FrontFigures {
  return {
    counters: sharedFigures(DESK_NAMES, memory),
    refusals: sharedFigures(REFUSAL_NAMES, memory, DESK_NAMES.length),
    relayed: sharedFigures(RELAY_REASONS, memory, RELAYED_AT),
  };
}
