/**
 * An epoch's leader schedule as a message: 432,000 slots are one array that changes its owner, and
 * the leaders are one text.
 */

import { EPOCH_SLOTS_MAX } from "../../core/limits.ts";
import { SCHEDULE_LEADERS_MAX } from "../limits.ts";
import type { EpochLeaders } from "../ports.ts";
import { LINE_END, lineText } from "./text-lines.ts";

export interface EpochMessage {
  readonly kind: "epoch";
  readonly id: number;
  readonly epoch: number;
  readonly firstSlot: number;
  readonly slots: number;
  /** Identities, one a line. */
  readonly identities: string;
  /** How many slots each leader has, and their slots one leader after another. */
  readonly counts: Uint32Array;
  readonly indexes: Uint32Array;
}

/** An index that no epoch has, for what is no index. */
const NO_INDEX = 0xffff_ffff;

/** Null for a schedule that no cluster has, whose size may be anything. */
export function epochMessage(id: number, source: EpochLeaders): EpochMessage | null {
  const { epoch, firstSlot, slots, leaders } = source;
  if (slots > EPOCH_SLOTS_MAX || leaders.size > SCHEDULE_LEADERS_MAX) return null;
  let size = 0;
  for (const [identity, indexes] of leaders) {
    if (lineText(identity) === null) return null;
    size += indexes.length;
  }
  if (size > slots) return null;
  const counts = new Uint32Array(leaders.size);
  const all = new Uint32Array(size);
  let [leader, at] = [0, 0];
  for (const indexes of leaders.values()) {
    counts[leader] = indexes.length;
    leader += 1;
    for (const index of indexes) {
      all[at] = Number.isInteger(index) && index >= 0 && index < slots ? index : NO_INDEX;
      at += 1;
    }
  }
  const identities = [...leaders.keys()].join(LINE_END);
  return { kind: "epoch", id, epoch, firstSlot, slots, identities, counts, indexes: all };
}

export function readEpochMessage(message: EpochMessage): EpochLeaders {
  const { epoch, firstSlot, slots, identities, counts, indexes } = message;
  const leaders = new Map<string, Uint32Array>();
  let at = 0;
  for (const [leader, identity] of identities.split(LINE_END).entries()) {
    const count = counts[leader] ?? 0;
    leaders.set(identity, indexes.subarray(at, at + count));
    at += count;
  }
  return { epoch, firstSlot, slots, leaders };
}
