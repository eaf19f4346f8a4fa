/**
 * JSON-RPC requests as validated values: the method, the bytes and the id; or the call's rejection.
 * Pure: limits, sending and responding are elsewhere.
 *
 * Errors are checked in a fixed order: parse_error, invalid_request, method_not_found,
 * invalid_params. Unknown config keys are ignored, because `@solana/web3.js` and `@solana/kit`
 * send several that mean nothing to a sender.
 */

import { isUtf8 } from "node:buffer";
import { base58LengthMax, decodeBase58, decodeBase64 } from "../../core/encoding.ts";
import type { Rejection } from "../../core/errors.ts";
import {
  LEGACY_TRANSACTION_BYTES_MAX,
  SIGNATURES_MAX,
  V1_TRANSACTION_BYTES_MAX,
} from "../../core/limits.ts";
import { RPC_BATCH_CALLS_MAX } from "../limits.ts";
import { idText } from "./json-id.ts";
import { FOREIGN_METHODS, RPC_MESSAGES } from "./json-rpc-messages.ts";

export type RpcBody =
  | { readonly kind: "rejected"; readonly rejection: Rejection }
  | { readonly kind: "single"; readonly text: string; readonly call: unknown }
  | { readonly kind: "batch"; readonly text: string; readonly calls: readonly unknown[] };

export type RpcCall =
  | {
      readonly kind: "send";
      /** The id as JSON text. */
      readonly id: string;
      readonly bytes: Uint8Array;
      readonly maxRetries: number | null;
    }
  | { readonly kind: "keyless"; readonly id: string; readonly method: KeylessMethod }
  | { readonly kind: "rejected"; readonly id: string; readonly rejection: Rejection };

export type SendCall = Extract<RpcCall, { readonly kind: "send" }>;

/** The methods that need no key. */
export const KEYLESS_METHODS = [
  "getHealth",
  "getTipAccounts",
  "getVersion",
  "rpc.discover",
] as const;
export type KeylessMethod = (typeof KEYLESS_METHODS)[number];

/** The method if it needs no key, null for any other value. */
export function keylessMethod(method: unknown): KeylessMethod | null {
  return KEYLESS_METHODS.find((each) => each === method) ?? null;
}

/** Parses a complete body. */
export function parseBody(bytes: Uint8Array): RpcBody {
  if (bytes.length === 0) return rejectedBody("parse_error", RPC_MESSAGES.emptyBody());
  if (!isUtf8(bytes)) {
    return rejectedBody("parse_error", RPC_MESSAGES.notUtf8(bytes.length));
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the body, which may be anything; the size is enough.
    return rejectedBody("parse_error", RPC_MESSAGES.notJson(bytes.length));
  }
  if (!Array.isArray(value)) return { kind: "single", text, call: value };
  if (value.length === 0 || value.length > RPC_BATCH_CALLS_MAX) {
    return rejectedBody(
      "invalid_request",
      RPC_MESSAGES.batchSize(value.length, RPC_BATCH_CALLS_MAX),
      { found: value.length, needed: RPC_BATCH_CALLS_MAX },
    );
  }
  return { kind: "batch", text, calls: value };
}

/** The id of any call as JSON text, "null" where it has none that can be echoed. */
export function callId(call: unknown, text: string, index: number): string {
  return (isRecord(call) ? idText(call, text, index) : null) ?? "null";
}

/** Reads one call. `index` is its index in the batch, -1 for a single call. */
export function readCall(call: unknown, text: string, index: number): RpcCall {
  if (!isRecord(call)) {
    return rejected("null", "invalid_request", RPC_MESSAGES.notObject(describe(call)));
  }
  const id = idText(call, text, index);
  if (id === null) {
    const found = Object.hasOwn(call, "id") ? describe(call["id"]) : "missing";
    return rejected("null", "invalid_request", RPC_MESSAGES.badId(found));
  }
  if (call["jsonrpc"] !== "2.0") {
    return rejected(id, "invalid_request", RPC_MESSAGES.badVersion(quote(call["jsonrpc"])));
  }
  const method = call["method"];
  if (typeof method !== "string") {
    return rejected(id, "invalid_request", RPC_MESSAGES.badMethod(describe(method)));
  }
  if (method === "sendTransaction") return readSend(id, call["params"]);
  const keyless = keylessMethod(method);
  if (keyless !== null) return { kind: "keyless", id, method: keyless };
  const instead = FOREIGN_METHODS.get(method);
  const message =
    instead === undefined
      ? RPC_MESSAGES.noMethod(quote(method))
      : RPC_MESSAGES.foreignMethod(quote(method), instead);
  return rejected(id, "method_not_found", message);
}

function readSend(id: string, params: unknown): RpcCall {
  if (!Array.isArray(params))
    return badParams(id, "params", describe(params), RPC_MESSAGES.paramsNeeded());
  if (params.length < 1 || params.length > 2) {
    return badParams(id, "params", `an array of ${params.length}`, RPC_MESSAGES.paramsNeeded());
  }
  const encoded: unknown = params[0];
  if (typeof encoded !== "string") {
    return badParams(id, "params[0]", describe(encoded), RPC_MESSAGES.textNeeded());
  }
  // Clients write null for an argument that they leave out.
  const config: unknown = params[1] ?? {};
  if (!isRecord(config))
    return badParams(id, "params[1]", describe(config), RPC_MESSAGES.objectNeeded());
  const encoding = config["encoding"] ?? "base64";
  if (encoding !== "base64" && encoding !== "base58") {
    return badParams(id, "encoding", quote(encoding), RPC_MESSAGES.encodingNeeded());
  }
  const maxRetries = config["maxRetries"] ?? null;
  if (maxRetries !== null && !isCount(maxRetries)) {
    return badParams(id, "maxRetries", quote(maxRetries), RPC_MESSAGES.retriesNeeded());
  }
  if (encoding === "base58") return readBase58(id, encoded, maxRetries);
  const bytes = decodeBase64(encoded);
  const needed = RPC_MESSAGES.base64Needed();
  if (bytes === null) return badParams(id, "params[0]", RPC_MESSAGES.notBase64(), needed);
  if (!startsWell(bytes) && isInBase58(encoded)) {
    return badParams(id, "params[0]", RPC_MESSAGES.inBase58(), needed);
  }
  return { kind: "send", id, bytes, maxRetries };
}

/** Whether the signature counts at the start of `bytes` are those of a transaction. */
export function startsWell(bytes: Uint8Array): boolean {
  const first = bytes[0] ?? 0;
  const signatures = first === V1_FIRST ? (bytes[1] ?? 0) : first;
  if (signatures < 1 || signatures > SIGNATURES_MAX) return false;
  if (first === V1_FIRST) return true;
  // The message after the signatures starts with its version, unless legacy, and the same count.
  const message = 1 + 64 * signatures;
  const count = (bytes[message] ?? 0) < 0x80 ? bytes[message] : bytes[message + 1];
  return count === signatures;
}

/**
 * Whether a text may be a transaction in base58, which Solana's own RPC assumes where no encoding
 * is given. One length in four also parses as base64, with meaningless bytes. The largest version 1
 * transactions are excluded, because decoding them takes too long.
 */
export function isInBase58(text: string): boolean {
  const bytes = decodeBase58(text, LEGACY_TRANSACTION_BYTES_MAX);
  return bytes !== null && startsWell(bytes);
}

function readBase58(id: string, encoded: string, maxRetries: number | null): RpcCall {
  const lengthMax = base58LengthMax(V1_TRANSACTION_BYTES_MAX);
  if (encoded.length > lengthMax) {
    const rejection: Rejection = {
      reason: "undecodable",
      message: RPC_MESSAGES.base58TooLong(encoded.length, lengthMax),
      data: { found: encoded.length, needed: lengthMax },
    };
    return { kind: "rejected", id, rejection };
  }
  // The longest text may decode to a few bytes more than a transaction: the decoder reports that.
  const bytes = decodeBase58(encoded, lengthMax);
  if (bytes !== null) return { kind: "send", id, bytes, maxRetries };
  return badParams(id, "params[0]", RPC_MESSAGES.notBase58(), RPC_MESSAGES.base58Needed());
}

function badParams(id: string, place: string, found: string, needed: string): RpcCall {
  const message = RPC_MESSAGES.badParams(place, found, needed);
  return rejected(id, "invalid_params", message, { param: place, found, needed });
}

function rejected(
  id: string,
  reason: Rejection["reason"],
  message: string,
  data: Rejection["data"] = {},
): RpcCall {
  return { kind: "rejected", id, rejection: { reason, message, data } };
}

function rejectedBody(
  reason: Rejection["reason"],
  message: string,
  data: Rejection["data"] = {},
): RpcBody {
  return { kind: "rejected", rejection: { reason, message, data } };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** A description of a value's type. */
function describe(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** A short value as it was written, a longer one by its type. */
function quote(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, QUOTE_CHARS_MAX));
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return describe(value);
}

const QUOTE_CHARS_MAX = 64;
/** The first byte of a v1 transaction (SIMD-0385, 2026-11). */
const V1_FIRST = 0x81;
