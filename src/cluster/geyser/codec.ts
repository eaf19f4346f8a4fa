/**
 * Encodes and decodes the few Yellowstone gRPC messages that are needed.
 *
 * The protocol has large messages for accounts and blocks; this edge requests none of them and
 * reads only the fields it uses, so the codec is a reader of tagged values and a table of field
 * numbers (`geyser.proto` and `solana-storage.proto` of yellowstone-grpc-proto 14.0.1, 2026-11).
 * Decoding never throws: malformed bytes give null. A number above 2^53 counts as absent.
 *
 * Decision: docs/decisions/0026-own-grpc-codec.md
 */

import { transactionErrorText } from "./transaction-error.ts";

/** The stage of a slot as reported by a server. */
export type SlotStage =
  | "processed"
  | "confirmed"
  | "finalized"
  | "firstShred"
  | "completed"
  | "created"
  | "other";

/**
 * `bank` is the id of the bank in which the node replays the slot: it may replay a slot twice, and
 * then the first bank is given up. The id counts up from the start of the node's process, so it is
 * comparable within one stream only. Servers before version 14 send none. Null also stands for 0,
 * the bank with which a node starts, because two of the three fields are not optional.
 */
export type GeyserUpdate =
  | {
      readonly kind: "slot";
      readonly slot: number;
      readonly stage: SlotStage;
      readonly bank: number | null;
    }
  | {
      readonly kind: "status";
      readonly slot: number;
      readonly bank: number | null;
      /** 64 bytes, a view of the message. */
      readonly signature: Uint8Array;
      /** The network's error as JSON text; null for success. */
      readonly error: string | null;
    }
  | {
      readonly kind: "block";
      readonly slot: number;
      readonly bank: number | null;
      /** Base58. */
      readonly blockhash: string;
      readonly height: number | null;
    }
  | { readonly kind: "ping" }
  | { readonly kind: "other" };

/** Fields of `SubscribeRequest` and its filters. */
const REQUEST = {
  slots: 2,
  blocksMeta: 5,
  commitment: 6,
  ping: 9,
  transactionsStatus: 10,
} as const;
const SLOT_FILTER = { byCommitment: 1, interslot: 2 } as const;
const STATUS_FILTER = { vote: 1, accountInclude: 3 } as const;
/** Fields of `SubscribeUpdate` and its updates. */
const UPDATE = { slot: 3, ping: 6, blockMeta: 7, status: 10 } as const;
/** The field `bank_id` of each update. */
const BANK = { slot: 5, status: 6, blockMeta: 10 } as const;
/** `SlotStatus` in its order; dead slots are not used. */
const STAGES: readonly SlotStage[] = [
  "processed",
  "confirmed",
  "finalized",
  "firstShred",
  "completed",
  "created",
  "other",
];

const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const WIRE_BYTES = 2;
const WIRE_FIXED32 = 5;
const SIGNATURE_BYTES = 64;
/** Bytes of the largest varint. */
const VARINT_BYTES_MAX = 10;

/** A stream's only request: all slot stages, the transactions of these accounts, block heights. */
export function encodeSubscribe(accounts: readonly string[]): Uint8Array {
  const name = text(1, "edge");
  const slots = [flag(SLOT_FILTER.byCommitment, false), flag(SLOT_FILTER.interslot, true)];
  const statuses = [
    flag(STATUS_FILTER.vote, false),
    ...accounts.map((account) => text(STATUS_FILTER.accountInclude, account)),
  ];
  return Buffer.concat([
    bytes(REQUEST.slots, [name, bytes(2, slots)]),
    bytes(REQUEST.transactionsStatus, [name, bytes(2, statuses)]),
    bytes(REQUEST.blocksMeta, [name, bytes(2, [])]),
    // Processed is 0; sent nevertheless, because the field is optional.
    flag(REQUEST.commitment, false),
  ]);
}

/** Response to a server's ping. */
export function encodePing(id: number): Uint8Array {
  return bytes(REQUEST.ping, [Buffer.from([8, id & 0x7f])]);
}

/** Decodes one `SubscribeUpdate`; null if malformed. */
export function decodeUpdate(message: Uint8Array): GeyserUpdate | null {
  let update: GeyserUpdate | null = { kind: "other" };
  const whole = eachField(message, (field, value) => {
    if (typeof value === "number") return;
    if (field === UPDATE.slot) update = readSlot(value);
    else if (field === UPDATE.status) update = readStatus(value);
    else if (field === UPDATE.blockMeta) update = readBlock(value);
    else if (field === UPDATE.ping) update = { kind: "ping" };
  });
  return whole && message.length > 0 ? update : null;
}

function readSlot(message: Uint8Array): GeyserUpdate | null {
  let slot = 0;
  let stage = 0;
  let bank = 0;
  const whole = eachField(message, (field, value) => {
    if (typeof value !== "number") return;
    if (field === 1) slot = value;
    else if (field === 3) stage = value;
    else if (field === BANK.slot) bank = value;
  });
  if (!whole || slot === 0) return null;
  return { kind: "slot", slot, stage: STAGES[stage] ?? "other", bank: bankOf(bank) };
}

function readStatus(message: Uint8Array): GeyserUpdate | null {
  const found: {
    slot: number;
    signature: Uint8Array;
    error: string | null;
    bank: number | null;
  } = {
    slot: 0,
    signature: message.subarray(0, 0),
    error: null,
    bank: null,
  };
  const whole = eachField(message, (field, value) => {
    if (typeof value === "number") {
      if (field === 1) found.slot = value;
      else if (field === BANK.status) found.bank = bankOf(value);
    } else if (field === 2) found.signature = value;
    else if (field === 5) found.error = readError(value);
  });
  if (!whole || found.slot === 0 || found.signature.length !== SIGNATURE_BYTES) return null;
  return { kind: "status", ...found };
}

/** `TransactionError` holds the network's own encoding of the error as bytes. */
function readError(message: Uint8Array): string {
  let encoded: Uint8Array = message.subarray(0, 0);
  eachField(message, (field, value) => {
    if (field === 1 && typeof value !== "number") encoded = value;
  });
  return transactionErrorText(encoded);
}

function readBlock(message: Uint8Array): GeyserUpdate | null {
  let slot = 0;
  let blockhash = "";
  let height: number | null = null;
  let bank = 0;
  const whole = eachField(message, (field, value) => {
    if (typeof value === "number") {
      if (field === 1) slot = value;
      else if (field === BANK.blockMeta) bank = value;
    } else if (field === 2) blockhash = Buffer.from(value).toString("latin1");
    else if (field === 5) height = readHeight(value);
  });
  if (!whole || slot === 0 || blockhash === "") return null;
  return { kind: "block", slot, blockhash, height, bank: bankOf(bank) };
}

function bankOf(id: number): number | null {
  return id === 0 ? null : id;
}

function readHeight(message: Uint8Array): number | null {
  let height: number | null = null;
  eachField(message, (field, value) => {
    if (field === 1 && typeof value === "number") height = value;
  });
  return height;
}

/** Calls `act` for each field that is a varint or bytes; false if the message is malformed. */
function eachField(
  message: Uint8Array,
  act: (field: number, value: number | Uint8Array) => void,
): boolean {
  const at = { place: 0 };
  while (at.place < message.length) {
    const tag = readVarint(message, at);
    const field = Math.floor(tag / 8);
    if (!(field >= 1) || !Number.isSafeInteger(tag)) return false;
    const wire = tag % 8;
    if (wire === WIRE_VARINT) {
      const value = readVarint(message, at);
      if (Number.isNaN(value)) return false;
      if (Number.isSafeInteger(value)) act(field, value);
    } else if (wire === WIRE_BYTES) {
      const size = readVarint(message, at);
      if (!(at.place + size <= message.length)) return false;
      act(field, message.subarray(at.place, at.place + size));
      at.place += size;
    } else if (wire === WIRE_FIXED64) at.place += 8;
    else if (wire === WIRE_FIXED32) at.place += 4;
    else return false;
  }
  return at.place === message.length;
}

/** NaN if truncated or too long; not a safe integer if above 2^53. */
function readVarint(message: Uint8Array, at: { place: number }): number {
  let value = 0;
  const last = at.place + VARINT_BYTES_MAX;
  for (let shift = 1; at.place < last; shift *= 128) {
    const byte = message[at.place];
    if (byte === undefined) return Number.NaN;
    at.place += 1;
    value += (byte & 0x7f) * shift;
    if (byte < 0x80) return value;
  }
  return Number.NaN;
}

function flag(field: number, value: boolean): Uint8Array {
  return Buffer.from([field * 8 + WIRE_VARINT, value ? 1 : 0]);
}

function text(field: number, value: string): Uint8Array {
  return bytes(field, [Buffer.from(value, "utf8")]);
}

function bytes(field: number, parts: readonly Uint8Array[]): Uint8Array {
  const body = Buffer.concat(parts);
  return Buffer.concat([varint(field * 8 + WIRE_BYTES), varint(body.length), body]);
}

function varint(value: number): Uint8Array {
  const written: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    written.push((rest % 128) | 0x80);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...written, rest]);
}
