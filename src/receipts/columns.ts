/**
 * What a receipt is made of: columns of numbers in typed arrays, one place for each receipt, each
 * copy and each packet, and the numbers under which states and reasons stand in them.
 */

import {
  DELIVERY_REASONS,
  type DeliveryReason,
  END_REASONS,
  type EndReason,
} from "../core/errors.ts";

/** No row, no copy, no sequence, no slot. */
export const NONE = -1;

/** A copy's states. */
export const SENT = 0;
export const ACKED = 1;
export const FAILED = 2;
export const DROPPED = 3;

/**
 * A receipt's states by their number in RECEIPT_STATES. The first four are what its copies say and
 * stand in `deliveryState`; all that `landing` can be but IN_FLIGHT hides them.
 */
export const STATE_ACCEPTED = 0;
export const STATE_SENT = 1;
export const STATE_ACKNOWLEDGED = 2;
export const STATE_FAILED = 3;
export const STATE_PROCESSED = 4;
export const STATE_LANDED = 5;
export const STATE_EXPIRED = 6;
export const STATE_DROPPED = 7;
/** In `landing`: nothing is known. */
export const IN_FLIGHT = 0;

// The keys of a literal are its own names.
const DELIVERY_NAMES = Object.keys(DELIVERY_REASONS) as readonly DeliveryReason[];
const END_NAMES = Object.keys(END_REASONS) as readonly EndReason[];
const DELIVERY_NUMBERS = numbersOf(DELIVERY_NAMES);
const END_NUMBERS = numbersOf(END_NAMES);

/** Reasons by number less one; the number 0 stands for none. */
function numbersOf<Name>(names: readonly Name[]): ReadonlyMap<Name, number> {
  return new Map(names.map((name, index) => [name, index + 1]));
}

/** The number under which a copy's reason is kept. */
export function reasonNumber(reason: DeliveryReason | null): number {
  return reason === null ? 0 : (DELIVERY_NUMBERS.get(reason) ?? 0);
}

export function reasonOf(number: number): DeliveryReason | null {
  return DELIVERY_NAMES[number - 1] ?? null;
}

/** The number under which the reason of an end is kept. */
export function endReasonNumber(reason: EndReason | null): number {
  return reason === null ? 0 : (END_NUMBERS.get(reason) ?? 0);
}

export function endReasonOf(number: number): EndReason | null {
  return END_NAMES[number - 1] ?? null;
}

/** One row for each receipt. */
export function createRows(count: number) {
  return {
    receivedNs: new Float64Array(count),
    /** The same moment by the wall clock, which may be set later. */
    receivedUnixMs: new Float64Array(count),
    /** The slot in progress then, or NONE. */
    receivedSlot: new Float64Array(count),
    decodedNs: new Float64Array(count),
    tipLamports: new Float64Array(count),
    priorityFeeLamports: new Float64Array(count),
    version: new Int8Array(count),
    /** Times this transaction was submitted, up to the column's maximum. */
    submissions: new Uint16Array(count),
    firstDelivery: new Int32Array(count),
    lastDelivery: new Int32Array(count),
    deliveryCount: new Uint8Array(count),
    /** Copies that found no place. */
    deliveriesOmitted: new Uint16Array(count),
    /** Copies on the wire that await their end. */
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
  };
}

export function createDeliveries(count: number) {
  return {
    next: new Int32Array(count),
    /** The packet's id to 32 bits: those of copies lie closer together. */
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
    /** 1 once a copy of this packet was on the wire. */
    sent: new Uint8Array(count),
  };
}

/** What a group of columns takes, in bytes. */
export function bytesOf(columns: Readonly<Record<string, ArrayBufferView>>): number {
  return Object.values(columns).reduce((sum, column) => sum + column.byteLength, 0);
}
