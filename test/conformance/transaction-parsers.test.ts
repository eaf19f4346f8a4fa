/**
 * The decoder against the parsers that senders use. For what it accepts, `@solana/kit` and (where
 * it knows the version) `@solana/web3.js` must read the same signature, keys, blockhash and
 * instructions; what kit cannot read, it must reject.
 */

import {
  type Address,
  getBase58Decoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
} from "@solana/kit";
import { VersionedTransaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { encodeKey, encodeSignature } from "../../src/core/encoding.ts";
import type { Accepted } from "../../src/core/flow.ts";
import {
  advanceNonce,
  computeUnitLimit,
  computeUnitPrice,
  type InstructionSpec,
  memo,
  newKeypair,
  type RawTable,
} from "../support/transactions.ts";
import { accepted, decoder, nameOf, tipped } from "../support/validations.ts";

/** mulberry32: the same cases in every run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const PAIRS = Array.from({ length: 24 }, (_, i) => newKeypair(2000 + i));

function pairAt(i: number): (typeof PAIRS)[number] {
  const pair = PAIRS[i];
  if (pair === undefined) throw new RangeError(`no keypair ${i}`);
  return pair;
}

/** A valid transaction of any version, unsigned, with room for its signatures. */
function anyTransaction(next: (below: number) => number): Uint8Array {
  const version = ([-1, 0, 1] as const)[next(3)] ?? -1;
  const instructions: InstructionSpec[] = [];
  if (next(5) === 0) {
    instructions.push(advanceNonce(pairAt(0).publicKey, pairAt(1).publicKey));
  }
  if (next(3) === 0) instructions.push(computeUnitLimit(next(2_000_000)));
  if (next(3) === 0) instructions.push(computeUnitPrice(next(1_000_000)));
  for (let i = next(4); i > 0; i -= 1) {
    const accounts = Array.from({ length: next(8) }, () => {
      const seat = next(20);
      return { key: pairAt(4 + seat).publicKey, signer: seat < 2, writable: seat % 2 === 0 };
    });
    const data = new Uint8Array(next(next(9) === 0 ? 200 : 40)).map(() => next(256));
    instructions.push({ ...memo(data), accounts });
  }
  const tables: RawTable[] = Array.from({ length: version === 0 ? next(3) : 0 }, (_, i) => {
    const first = next(256);
    const lookups = (from: number, count: number): number[] =>
      Array.from({ length: count }, (_, at) => (first + from + at) % 256);
    const writable = lookups(0, next(4));
    const readonly = lookups(writable.length, 1 + next(4));
    return { key: pairAt(2 + i).publicKey, writable, readonly };
  });
  const config = {
    ...(next(2) === 0 ? { priorityFeeLamports: next(2 ** 31) } : {}),
    ...(next(2) === 0 ? { computeUnitLimit: next(2 ** 31) } : {}),
    ...(next(2) === 0 ? { heapBytes: 32_768 + 1024 * next(8) } : {}),
  };
  const { bytes, parts } = tipped({ version, instructions, tables, config });
  for (let i = 0; i < 64 * parts.header[0]; i += 1) {
    bytes[version === 1 ? bytes.length - 1 - i : 1 + i] = next(256);
  }
  return bytes;
}

/** One to three small mutations: a byte changed, removed or inserted, or the end cut off. */
function damaged(bytes: Uint8Array, next: (below: number) => number): Uint8Array {
  let out = Buffer.from(bytes);
  for (let i = 1 + next(3); i > 0 && out.length > 0; i -= 1) {
    const at = next(out.length);
    const kind = next(10);
    if (kind < 7) out[at] = next(3) === 0 ? next(256) : (out[at] ?? 0) ^ (1 << next(8));
    else if (kind === 7) out = Buffer.concat([out.subarray(0, at), out.subarray(at + 1)]);
    else if (kind === 8) {
      out = Buffer.concat([out.subarray(0, at), Buffer.of(next(256)), out.subarray(at)]);
    } else out = out.subarray(0, at);
  }
  return new Uint8Array(out);
}

const transactions = getTransactionDecoder();
const messages = getCompiledTransactionMessageDecoder();

interface Reading {
  readonly version: number;
  readonly signature: string;
  readonly signers: number;
  readonly keys: readonly string[];
  readonly blockhash: string;
  readonly instructions: number;
  readonly message: string;
}

function readByDecoder(bytes: Uint8Array, validation: Accepted, reading: Reading): Reading {
  const { messageOffset, messageSize, keysOffset } = validation;
  const message = bytes.subarray(messageOffset, messageOffset + messageSize);
  return {
    version: validation.version,
    signature: encodeSignature(bytes, validation.signatureOffset),
    signers: validation.signatureCount,
    keys: reading.keys.map((_, i) => encodeKey(bytes, keysOffset + 32 * i)),
    blockhash: encodeKey(bytes, validation.blockhashOffset),
    // The record holds no instruction count; the message covers all instructions.
    instructions: reading.instructions,
    message: Buffer.from(message).toString("hex"),
  };
}

function readByKit(bytes: Uint8Array): Reading {
  const { messageBytes, signatures } = transactions.decode(bytes);
  const message = messages.decode(messageBytes);
  const payer: Address | undefined = message.staticAccounts[0];
  const signature = payer === undefined ? undefined : signatures[payer];
  return {
    version: message.version === "legacy" ? -1 : message.version,
    // kit omits an all-zero signature.
    signature: getBase58Decoder().decode(signature ?? new Uint8Array(64)),
    signers: Object.keys(signatures).length,
    keys: message.staticAccounts,
    blockhash: message.lifetimeToken,
    instructions: "instructions" in message ? message.instructions.length : message.numInstructions,
    message: Buffer.from(Uint8Array.from(messageBytes)).toString("hex"),
  };
}

function readByWeb3(bytes: Uint8Array): Reading {
  const { signatures, message } = VersionedTransaction.deserialize(bytes);
  return {
    version: message.version === "legacy" ? -1 : 0,
    signature: encodeSignature(signatures[0] ?? new Uint8Array(0)),
    signers: signatures.length,
    keys: message.staticAccountKeys.map((key) => key.toBase58()),
    blockhash: message.recentBlockhash,
    instructions: message.compiledInstructions.length,
    message: Buffer.from(message.serialize()).toString("hex"),
  };
}

function throws(act: () => unknown): boolean {
  try {
    act();
    return false;
  } catch {
    // Throwing is the result.
    return true;
  }
}

/** Compares all readings of bytes that the decoder accepted. */
function expectAgreement(bytes: Uint8Array, validation: Accepted): void {
  const kit = readByKit(bytes);
  expect(readByDecoder(bytes, validation, kit)).toEqual(kit);
  if (validation.version === 1) return;
  expect(readByWeb3(bytes)).toEqual(kit);
}

describe("against @solana/kit and @solana/web3.js", () => {
  it("parses valid transactions identically", () => {
    const next = random(1);
    for (let i = 0; i < 1500; i += 1) {
      const bytes = anyTransaction(next);
      expectAgreement(bytes, accepted(bytes));
    }
  });

  it("accepts no damaged transaction that they parse differently", () => {
    const next = random(2);
    const count = { accepted: 0, refused: 0, refusedByKit: 0 };
    for (let i = 0; i < 900; i += 1) {
      const sound = anyTransaction(next);
      for (let j = 0; j < 12; j += 1) {
        const bytes = damaged(sound, next);
        const validation = decoder.decode(bytes);
        if (validation.kind === "accepted") {
          count.accepted += 1;
          expectAgreement(bytes, validation);
        } else {
          count.refused += 1;
          if (j < 3 && throws(() => readByKit(bytes))) count.refusedByKit += 1;
        }
      }
    }
    // Both outcomes occurred often enough to be meaningful.
    expect(count.accepted + count.refused).toBe(10_800);
    expect(count.accepted).toBeGreaterThan(1000);
    expect(count.refusedByKit).toBeGreaterThan(500);
  });

  it("parses a transaction with any one byte changed identically", () => {
    for (const version of [-1, 0, 1] as const) {
      const { bytes } = tipped({ version, extraInstructions: [memo("a"), memo("b")] });
      for (let at = 0; at < bytes.length; at += 1) {
        for (const flip of [1, 0x80, 0xff]) {
          const changed = Uint8Array.from(bytes);
          changed[at] = (changed[at] ?? 0) ^ flip;
          const validation = decoder.decode(changed);
          if (validation.kind === "accepted") expectAgreement(changed, validation);
          else expect(nameOf(validation)).toBeDefined();
        }
      }
    }
  });
});
