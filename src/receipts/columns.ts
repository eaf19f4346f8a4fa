/**
 * The storage of receipts: numeric columns in typed arrays with one element per receipt, delivery
 * and packet, and the numeric codes of states and reasons.
 */

import {
  DELIVERY_REASON_NAMES,
  type DeliveryReason,
  END_REASON_NAMES,
  type EndReason,
} from "../core/errors.ts";

/** No row, delivery, sequence or slot. */
export const NONE = -1;

/** Delivery states. */
export const SENT = 0;
export const ACKED = 1;
export const FAILED = 2;
export const DROPPED = 3;

/**
 * Receipt states by their number in RECEIPT_STATES. The first four follow from the deliveries and
 * are stored in `deliveryState`; any `landing` other than IN_FLIGHT overrides them.
 */
export const STATE_ACCEPTED = 0;
export const STATE_SENT = 1;
export const STATE_ACKNOWLEDGED = 2;
export const STATE_FAILED = 3;
export const STATE_PROCESSED = 4;
export const STATE_LANDED = 5;
export const STATE_EXPIRED = 6;
export const STATE_DROPPED = 7;
/** In the log of changes alone: a transaction that has landed was accepted again. */
export const LANDED_AGAIN = 8;
/** In the log alone, while a successor follows: something other than the state changed. */
export const OTHER_CHANGE = 9;
/** In `landing`: nothing is known. */
export const IN_FLIGHT = 0;

const DELIVERY_NUMBERS = numbersOf(DELIVERY_REASON_NAMES);
const END_NUMBERS = numbersOf(END_REASON_NAMES);

/** Reasons by number minus one; the number 0 means none. */
function numbersOf<Name>(names: readonly Name[]): ReadonlyMap<Name, number> {
  return new Map(names.map((name, index) => [name, index + 1]));
}

/** The code of a delivery's reason. */
export function reasonNumber(reason: DeliveryReason | null): number {
  return reason === null ? 0 : (DELIVERY_NUMBERS.get(reason) ?? 0);
}

export function reasonOf(number: number): DeliveryReason | null {
  return DELIVERY_REASON_NAMES[number - 1] ?? null;
}

/** The code of the reason of a final state. */
export function endReasonNumber(reason: EndReason | null): number {
  return reason === null ? 0 : (END_NUMBERS.get(reason) ?? 0);
}

export function endReasonOf(number: number): EndReason | null {
  return END_REASON_NAMES[number - 1] ?? null;
}

/** One row per receipt. */
export function createRows(count: number) {
  return {
    receivedNs: new Float64Array(count),
    /** The same time by the wall clock, which may be adjusted later. */
    receivedUnixMs: new Float64Array(count),
    /** The slot in progress at receipt, or NONE. */
    receivedSlot: new Float64Array(count),
    decodedNs: new Float64Array(count),
    tipLamports: new Float64Array(count),
    priorityFeeLamports: new Float64Array(count),
    priorityLamports: new Float64Array(count),
    version: new Int8Array(count),
    /** Submissions of this transaction, up to the column's maximum. */
    submissions: new Uint16Array(count),
    firstDelivery: new Int32Array(count),
    lastDelivery: new Int32Array(count),
    deliveryCount: new Uint8Array(count),
    /** Deliveries not stored for lack of room. */
    deliveriesOmitted: new Uint16Array(count),
    /** Deliveries on the wire without a final state. */
    deliveriesOpen: new Uint16Array(count),
    /** One of the first four of RECEIPT_STATES. */
    deliveryState: new Uint8Array(count),
    /** IN_FLIGHT, or one of the last four of RECEIPT_STATES. */
    landing: new Uint8Array(count),
    /** When the landing became known, and the slot of its block. */
    landingNs: new Float64Array(count),
    landingSlot: new Float64Array(count),
    endReason: new Uint8Array(count),
    /** The network's error, as a number of the store's `errors`. */
    error: new Uint16Array(count),
    /** 1: of a transaction that another process accepted and reports on. */
    imported: new Uint8Array(count),
  };
}

export function createDeliveries(count: number) {
  return {
    next: new Int32Array(count),
    /** The lower 32 bits of the packet's id: the ids of stored deliveries differ by less. */
    packetId: new Uint32Array(count),
    slot: new Uint32Array(count),
    /** The number of the leader in the store's `leaders`. */
    leader: new Uint32Array(count),
    sentNs: new Float64Array(count),
    endedNs: new Float64Array(count),
    rttUs: new Float32Array(count),
    connectionAgeMs: new Float32Array(count),
    /** As `Outcome.resend`, up to the column's maximum. */
    resend: new Uint16Array(count),
    state: new Uint8Array(count),
    reason: new Uint8Array(count),
  };
}

export function createPackets(count: number) {
  return {
    id: new Float64Array(count).fill(NONE),
    sequence: new Float64Array(count),
    receivedNs: new Float64Array(count),
    /** 1 once a delivery of this packet was on the wire. */
    sent: new Uint8Array(count),
  };
}

/** The size of a group of columns in bytes. */
export function bytesOf(columns: Readonly<Record<string, ArrayBufferView>>): number {
  return Object.values(columns).reduce((sum, column) => sum + column.byteLength, 0);
}
