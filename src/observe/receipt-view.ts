/**
 * A receipt as it is answered, made from the store's columns when somebody asks.
 *
 * The field names are part of the interface: snake case, times in microseconds from `received_at`,
 * null for what did not happen.
 */

import type { CopyReason } from "../core/errors.ts";
import {
  ACKED,
  DROPPED,
  FAILED,
  NONE,
  type ReceiptStore,
  reasonOf,
  SENT,
} from "./receipt-store.ts";

/** By the number under which the store keeps them. */
const COPY_STATES = ["sent", "acked", "failed", "dropped"] as const;
type CopyState = (typeof COPY_STATES)[number];

/** A receipt as it is answered. Times ending in `_us` count microseconds from `received_at`. */
export interface Receipt {
  readonly signature: string;
  /**
   * accepted: no copy is on the wire yet. sent: at least one is. acknowledged: at least one leader
   * has the whole transaction. failed: every copy ended without that.
   */
  readonly state: "accepted" | "sent" | "acknowledged" | "failed";
  /** When this edge had the first submission's last byte, ISO 8601 with milliseconds. */
  readonly received_at: string;
  /** How often it was submitted here, repetitions while it was in flight included. */
  readonly submissions: number;
  readonly version: "legacy" | 0 | 1;
  readonly tip_lamports: number;
  readonly priority_fee_lamports: number;
  readonly timings: {
    readonly decoded_us: number;
    readonly first_sent_us: number | null;
    readonly first_acked_us: number | null;
  };
  readonly leaders: readonly LeaderCopy[];
  /** Copies that are not in `leaders` because the list is full. */
  readonly leaders_left_out: number;
  /** Always "unknown": an acknowledgement says that a leader has it, not that it landed. */
  readonly landing: "unknown";
}

export interface LeaderCopy {
  readonly identity: string;
  readonly address: string;
  readonly slot: number;
  readonly state: CopyState;
  readonly reason: CopyReason | null;
  readonly sent_us: number | null;
  readonly acked_us: number | null;
  /** When it failed or was dropped. */
  readonly ended_us: number | null;
  /** The connection's smoothed round trip at the last event, null when not known. */
  readonly rtt_us: number | null;
}

/** The receipt in `row`; `receivedUnixMs` is its first submission's time on the wall clock. */
export function receiptOf(
  store: ReceiptStore,
  row: number,
  signature: string,
  receivedUnixMs: number,
): Receipt {
  const { rows } = store;
  const version = rows.version[row] ?? 0;
  const leaders = leadersOf(store, row);
  const firstOf = (times: readonly (number | null)[]): number | null => {
    const known = times.filter((time) => time !== null);
    return known.length === 0 ? null : Math.min(...known);
  };
  return {
    signature,
    state: stateOf(leaders),
    received_at: new Date(receivedUnixMs).toISOString(),
    submissions: rows.submissions[row] ?? 0,
    version: version === -1 ? "legacy" : version === 0 ? 0 : 1,
    tip_lamports: rows.tipLamports[row] ?? 0,
    priority_fee_lamports: rows.priorityFeeLamports[row] ?? 0,
    timings: {
      decoded_us: microseconds((rows.decodedNs[row] ?? 0) - (rows.receivedNs[row] ?? 0)),
      first_sent_us: firstOf(leaders.map((copy) => copy.sent_us)),
      first_acked_us: firstOf(leaders.map((copy) => copy.acked_us)),
    },
    leaders,
    leaders_left_out: rows.copiesLeftOut[row] ?? 0,
    landing: "unknown",
  };
}

function leadersOf({ rows, copies }: ReceiptStore, row: number): readonly LeaderCopy[] {
  const receivedNs = rows.receivedNs[row] ?? 0;
  const leaders: LeaderCopy[] = [];
  let copy = rows.firstCopy[row] ?? NONE;
  for (; copy !== NONE; copy = copies.next[copy] ?? NONE) {
    const state = copies.state[copy] ?? SENT;
    const endedUs = microseconds((copies.endedNs[copy] ?? 0) - receivedNs);
    const rttUs = copies.rttUs[copy] ?? 0;
    leaders.push({
      identity: copies.identity.at(copy),
      address: copies.address.at(copy),
      slot: copies.slot[copy] ?? 0,
      state: COPY_STATES[state] ?? "sent",
      reason: reasonOf(copies.reason[copy] ?? 0),
      sent_us: state === DROPPED ? null : microseconds((copies.sentNs[copy] ?? 0) - receivedNs),
      acked_us: state === ACKED ? endedUs : null,
      ended_us: state === FAILED || state === DROPPED ? endedUs : null,
      rtt_us: rttUs === 0 ? null : Math.round(rttUs),
    });
  }
  return leaders;
}

function stateOf(leaders: readonly LeaderCopy[]): Receipt["state"] {
  if (leaders.some((copy) => copy.state === "acked")) return "acknowledged";
  if (leaders.some((copy) => copy.state === "sent")) return "sent";
  return leaders.length === 0 ? "accepted" : "failed";
}

/** Microseconds with one decimal. */
function microseconds(ns: number): number {
  return Math.round(ns / 100) / 10;
}
