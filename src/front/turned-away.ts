/**
 * Tells the main thread whom a front turned away before it looked at the transaction, because too
 * many requests are moved or something threw: for the account's refusals and its usage. All else
 * that a front refuses it has told of when it judged the transaction (submit.ts).
 *
 * Where half of the ring of records is full it is not told, because the other half is for what is
 * sent; the metrics count it all the same.
 */

import { FRONT_RECORDS } from "../core/front-limits.ts";
import type { DeskDeps } from "../ingress/desk.ts";
import type { KeyOwner } from "../ingress/gate.ts";
import type { FrontNote, RecordWriter } from "./records.ts";

export interface TurnedAwayDeps {
  readonly records: Pick<RecordWriter, "depth" | "turnedAway">;
  /** The place of the pass that the owner was found by; -1 where that was none. */
  readonly placeOf: (owner: KeyOwner) => number;
  /** A record was written, and nothing hurries. */
  readonly onRecord: (isUrgent: false) => void;
}

export function createTurnedAway(deps: TurnedAwayDeps): NonNullable<DeskDeps["refused"]> {
  const { records, placeOf, onRecord } = deps;
  return (owner, { reason }, bodyBytes) => {
    if (reason !== "overloaded" && reason !== "internal") return;
    const place = placeOf(owner);
    if (place < 0 || records.depth >= FRONT_RECORDS / 2) return;
    records.turnedAway({ ...NOTHING, place, bodyBytes }, reason === "overloaded");
    onRecord(false);
  };
}

const NOTHING: FrontNote = {
  bytes: new Uint8Array(),
  place: -1,
  receivedNs: 0,
  decodedNs: 0,
  sentNs: 0,
  bodyBytes: 0,
  maxRetries: null,
};
