/**
 * A receipt as returned to clients, built from the store's columns on request.
 *
 * The field names are part of the interface: snake case, times in microseconds from `received_at`,
 * null for what did not happen or is unknown.
 */

import { type DeliveryReason, END_REASONS, type EndReason } from "../core/errors.ts";
import { RECEIPT_STATES, type ReceiptState } from "../core/receipt-state.ts";
import {
  ACKED,
  DROPPED,
  endReasonOf,
  FAILED,
  IN_FLIGHT,
  NONE,
  reasonOf,
  SENT,
  STATE_DROPPED,
  STATE_EXPIRED,
  STATE_LANDED,
  STATE_PROCESSED,
} from "./columns.ts";
import { NO_ERROR } from "./errors.ts";
import type { ReceiptStore } from "./store.ts";

/** By the store's codes. */
const DELIVERY_STATES = ["sent", "acked", "failed", "dropped"] as const;
type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The fields in every representation of a receipt. */
export interface ReceiptSummary {
  readonly signature: string;
  /**
   * accepted: no delivery is on the wire yet. sent: at least one is. acknowledged: at least one
   * leader has the complete transaction. failed: all deliveries on the wire ended without that.
   * processed: an unconfirmed block contains it. landed, expired, dropped: final states.
   */
  readonly state: ReceiptState;
  /** When this edge had the first submission's last byte, ISO 8601 with milliseconds. */
  readonly received_at: string;
  /**
   * The slot in progress then, according to the announcements received before the landing was
   * known.
   */
  readonly received_slot: number | null;
  /** Submissions here, including duplicates while it was in flight. */
  readonly submissions: number;
  readonly version: "legacy" | 0 | 1;
  readonly tip_lamports: number;
  readonly priority_fee_lamports: number;
  /** Its rank: tip and priority fee, times the share of the account's transactions that landed. */
  readonly priority_lamports: number;
  readonly timings: {
    readonly decoded_us: number;
    readonly first_sent_us: number | null;
    readonly first_acked_us: number | null;
  };
  readonly landing: Landing;
}

export interface Receipt extends ReceiptSummary {
  /** The deliveries in the order of their first events, resends included. */
  readonly leaders: readonly LeaderDelivery[];
  /** Deliveries missing from `leaders` because the list is full. */
  readonly leaders_omitted: number;
}

/** Whether and where it landed, as far as this edge knows. */
export interface Landing {
  readonly state: "in_flight" | "processed" | "landed" | "expired" | "dropped";
  /** The slot of the block that contains it, or last did. */
  readonly slot: number | null;
  /**
   * That slot minus the slot in progress at receipt; 0 if it had landed before, sent another way.
   */
  readonly slots: number | null;
  /** The network's error if it landed and failed. */
  readonly error: unknown;
  readonly reason: EndReason | null;
  readonly message: string;
  /** When this became known. */
  readonly known_us: number | null;
}

export interface LeaderDelivery {
  readonly identity: string;
  readonly address: string;
  readonly slot: number;
  readonly state: DeliveryState;
  readonly reason: DeliveryReason | null;
  readonly sent_us: number | null;
  readonly acked_us: number | null;
  /** When it failed or was dropped. */
  readonly ended_us: number | null;
  /** The connection's smoothed round-trip time at the last event. */
  readonly rtt_us: number | null;
  /**
   * warm: the connection was ready when the delivery was queued. cold: the delivery waited for it.
   */
  readonly connection: "warm" | "cold" | null;
  /** How long the connection had been ready; null if it was not. */
  readonly connection_age_ms: number | null;
  /** Number of the delivery to this leader: 1 for the first, 2 for the first resend. */
  readonly attempt: number;
  /**
   * 0: a delivery of the first send. n: of this edge's nth resend of the transaction, which may be
   * the first delivery to this leader.
   */
  readonly resend: number;
}

/** The receipt in `row`. */
export function receiptOf(store: ReceiptStore, row: number, signature: string): Receipt {
  const leaders = leadersOf(store, row);
  return {
    ...summaryOf(store, row, signature),
    leaders,
    leaders_omitted: store.rows.deliveriesOmitted[row] ?? 0,
  };
}

/** The receipt in `row` without its leaders. */
export function summaryOf(store: ReceiptStore, row: number, signature: string): ReceiptSummary {
  const { rows } = store;
  const version = rows.version[row] ?? 0;
  return {
    signature,
    state: stateName(store.stateOf(row)),
    received_at: new Date(rows.receivedUnixMs[row] ?? 0).toISOString(),
    received_slot: slotOf(rows.receivedSlot[row] ?? NONE),
    submissions: rows.submissions[row] ?? 0,
    version: version === -1 ? "legacy" : version === 0 ? 0 : 1,
    tip_lamports: rows.tipLamports[row] ?? 0,
    priority_fee_lamports: rows.priorityFeeLamports[row] ?? 0,
    priority_lamports: rows.priorityLamports[row] ?? 0,
    timings: timingsOf(store, row),
    landing: landingOf(store, row),
  };
}

export function stateName(state: number): ReceiptState {
  return RECEIPT_STATES[state] ?? "accepted";
}

function slotOf(slot: number): number | null {
  return slot === NONE ? null : slot;
}

function timingsOf({ rows, deliveries }: ReceiptStore, row: number): Receipt["timings"] {
  const receivedNs = rows.receivedNs[row] ?? 0;
  let sentNs = Number.POSITIVE_INFINITY;
  let ackedNs = Number.POSITIVE_INFINITY;
  let delivery = rows.firstDelivery[row] ?? NONE;
  for (; delivery !== NONE; delivery = deliveries.next[delivery] ?? NONE) {
    const state = deliveries.state[delivery];
    if (state !== DROPPED) sentNs = Math.min(sentNs, deliveries.sentNs[delivery] ?? sentNs);
    if (state === ACKED) ackedNs = Math.min(ackedNs, deliveries.endedNs[delivery] ?? ackedNs);
  }
  const orNull = (ns: number): number | null =>
    Number.isFinite(ns) ? microseconds(ns - receivedNs) : null;
  return {
    decoded_us: microseconds((rows.decodedNs[row] ?? 0) - receivedNs),
    first_sent_us: orNull(sentNs),
    first_acked_us: orNull(ackedNs),
  };
}

function landingOf({ rows, errors }: ReceiptStore, row: number): Landing {
  const kind = rows.landing[row] ?? IN_FLIGHT;
  const slot = slotOf(rows.landingSlot[row] ?? NONE);
  const receivedSlot = slotOf(rows.receivedSlot[row] ?? NONE);
  const isLost = kind === STATE_EXPIRED || kind === STATE_DROPPED;
  const reason = isLost ? endReasonOf(rows.endReason[row] ?? 0) : null;
  const error = errors.at(rows.error[row] ?? NO_ERROR);
  const knownNs = (rows.landingNs[row] ?? 0) - (rows.receivedNs[row] ?? 0);
  return {
    state: LANDINGS[kind] ?? "in_flight",
    slot,
    slots: slot === null || receivedSlot === null ? null : Math.max(0, slot - receivedSlot),
    error: error === null ? null : parsed(error),
    reason,
    message: reason === null ? messageOf(kind, error !== null) : END_REASONS[reason],
    known_us: kind === IN_FLIGHT ? null : microseconds(knownNs),
  };
}

/** By the codes of the column `landing`. */
const LANDINGS: readonly (Landing["state"] | undefined)[] = [
  "in_flight",
  undefined,
  undefined,
  undefined,
  "processed",
  "landed",
  "expired",
  "dropped",
];

function messageOf(kind: number, failed: boolean): string {
  const how = failed ? ", where the network gave the error above" : "";
  if (kind === STATE_PROCESSED)
    return `a processed block holds it, which the cluster has not confirmed yet${how}`;
  if (kind === STATE_LANDED) return `a confirmed block holds it${how}`;
  return "no block is known to hold it, and it is watched on";
}

/** The network's error as a value; text that is not JSON stays a string. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Better than nothing: users read it too.
    return text;
  }
}

function leadersOf(store: ReceiptStore, row: number): readonly LeaderDelivery[] {
  const { rows, deliveries } = store;
  const receivedNs = rows.receivedNs[row] ?? 0;
  const leaders: LeaderDelivery[] = [];
  const attempts = new Map<string, number>();
  let delivery = rows.firstDelivery[row] ?? NONE;
  for (; delivery !== NONE; delivery = deliveries.next[delivery] ?? NONE) {
    const state = deliveries.state[delivery] ?? SENT;
    const leader = deliveries.leader[delivery] ?? NONE;
    const identity = store.leaders.identityOf(leader);
    const attempt = (attempts.get(identity) ?? 0) + 1;
    attempts.set(identity, attempt);
    const endedUs = microseconds((deliveries.endedNs[delivery] ?? 0) - receivedNs);
    const rttUs = deliveries.rttUs[delivery] ?? 0;
    leaders.push({
      identity,
      address: store.leaders.addressOf(leader),
      slot: deliveries.slot[delivery] ?? 0,
      state: DELIVERY_STATES[state] ?? "sent",
      reason: reasonOf(deliveries.reason[delivery] ?? 0),
      sent_us:
        state === DROPPED ? null : microseconds((deliveries.sentNs[delivery] ?? 0) - receivedNs),
      acked_us: state === ACKED ? endedUs : null,
      ended_us: state === FAILED || state === DROPPED ? endedUs : null,
      rtt_us: rttUs === 0 ? null : Math.round(rttUs),
      ...connectionOf(deliveries.connectionAgeMs[delivery] ?? Number.NaN),
      attempt,
      resend: deliveries.resend[delivery] ?? 0,
    });
  }
  return leaders;
}

function connectionOf(ageMs: number): Pick<LeaderDelivery, "connection" | "connection_age_ms"> {
  if (Number.isNaN(ageMs)) return { connection: null, connection_age_ms: null };
  if (ageMs < 0) return { connection: "cold", connection_age_ms: null };
  return { connection: "warm", connection_age_ms: Math.round(ageMs * 10) / 10 };
}

/** Microseconds with one decimal. */
function microseconds(ns: number): number {
  return Math.round(ns / 100) / 10;
}
