/**
 * Builds real transactions from raw bytes and node:crypto only, so that the code under test never
 * helps to build its own input.
 *
 * `buildTransaction` takes a specification (payer, tips, instructions) and returns the signed
 * bytes. Its `parts` are the same transaction as raw fields: spread them, change one, and pass them
 * to `serializeTransaction`, which writes and signs them unchecked.
 */

import { createHash, createPrivateKey, createPublicKey, randomBytes, sign } from "node:crypto";
import { fromBase58, toBase58 } from "./base58.ts";

export interface Keypair {
  readonly seed: Uint8Array;
  readonly publicKey: Uint8Array;
  /** The public key in base58. */
  readonly address: string;
  sign(message: Uint8Array): Uint8Array;
}

export interface AccountSpec {
  readonly key: Uint8Array;
  readonly signer: boolean;
  readonly writable: boolean;
}

export interface InstructionSpec {
  readonly program: Uint8Array;
  readonly accounts: readonly AccountSpec[];
  readonly data: Uint8Array;
}

export interface TipSpec {
  readonly to: Uint8Array | string;
  readonly lamports: number | bigint;
  /** Defaults to the payer. */
  readonly from?: Keypair;
  /** Bytes after the twelve of the transfer, which the network ignores. */
  readonly trailing?: Uint8Array;
}

export interface TransactionSpec {
  /** -1 legacy (default), 0 or 1. */
  readonly version?: -1 | 0 | 1;
  readonly payer?: Keypair;
  readonly tips?: readonly TipSpec[];
  /** Before the tips. */
  readonly instructions?: readonly InstructionSpec[];
  /** After the tips. */
  readonly extraInstructions?: readonly InstructionSpec[];
  /** Signers besides the payer and the tips' sources; each signs wherever its key must. */
  readonly signers?: readonly Keypair[];
  readonly blockhash?: Uint8Array;
  readonly tables?: readonly RawTable[];
  readonly config?: V1Config;
  /** false leaves every signature as zeros. */
  readonly sign?: boolean;
}

/** The settings of a v1 transaction; a missing one leaves its mask bit clear. */
export interface V1Config {
  readonly priorityFeeLamports?: number | bigint;
  readonly computeUnitLimit?: number;
  readonly loadedAccountsBytes?: number;
  readonly heapBytes?: number;
}

export interface RawInstruction {
  readonly programIndex: number;
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
}

export interface RawTable {
  readonly key: Uint8Array;
  readonly writable: readonly number[];
  readonly readonly: readonly number[];
}

/** Every field of a transaction as written. Counts follow the arrays unless overridden. */
export interface RawTransaction {
  readonly version: -1 | 0 | 1;
  /** numRequiredSignatures, numReadonlySigned, numReadonlyUnsigned. */
  readonly header: readonly [number, number, number];
  readonly keys: readonly Uint8Array[];
  readonly blockhash: Uint8Array;
  readonly instructions: readonly RawInstruction[];
  readonly tables: readonly RawTable[];
  /** Only v1: the mask and the 4-byte words that follow it. */
  readonly configMask: number;
  readonly configWords: readonly number[];
  /** How many signatures are written; defaults to header[0]. */
  readonly signatureCount?: number;
  /** The bytes of the count fields, to write them wrongly. */
  readonly signatureCountBytes?: Uint8Array;
  readonly keyCountBytes?: Uint8Array;
  readonly instructionCountBytes?: Uint8Array;
  readonly tableCountBytes?: Uint8Array;
  /** The version byte of v0 and v1. */
  readonly versionByte?: number;
  /** Appended after everything else. */
  readonly trailing?: Uint8Array;
}

export interface BuiltTransaction {
  readonly bytes: Uint8Array;
  /** The first signature, base58. */
  readonly signature: string;
  readonly signatureBytes: Uint8Array;
  readonly message: Uint8Array;
  readonly parts: RawTransaction;
  readonly payer: Keypair;
  /** All keypairs that may sign, for `serializeTransaction` of changed parts. */
  readonly keypairs: readonly Keypair[];
  readonly base64: string;
  readonly base58: string;
}

export const SYSTEM_PROGRAM = new Uint8Array(32);
export const COMPUTE_BUDGET_PROGRAM = fromBase58("ComputeBudget111111111111111111111111111111");
export const MEMO_PROGRAM = fromBase58("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");

/**
 * A keypair; the same for the same seed, random without one. A seed below 256 stands for 32 bytes
 * of that value, a larger one for its hash.
 */
export function newKeypair(seed?: number | Uint8Array): Keypair {
  if (typeof seed !== "number") return keypairOf(seed ?? new Uint8Array(randomBytes(32)));
  // Cached: many tests use the same few, and creating one is slow.
  const made = numbered.get(seed) ?? keypairOf(seedBytes(seed));
  numbered.set(seed, made);
  return made;
}

const numbered = new Map<number, Keypair>();

function keypairOf(secret: Uint8Array): Keypair {
  const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), secret]);
  const privateKey = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  const publicKey = new Uint8Array(spki.subarray(-32));
  return {
    seed: secret,
    publicKey,
    address: toBase58(publicKey),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}

function seedBytes(seed: number): Uint8Array {
  if (seed < 256) return new Uint8Array(32).fill(seed);
  return new Uint8Array(createHash("sha256").update(String(seed)).digest());
}

/** A System Program Transfer. */
export function transfer(
  from: Uint8Array,
  to: Uint8Array,
  lamports: number | bigint,
  trailing: Uint8Array = new Uint8Array(0),
): InstructionSpec {
  return {
    program: SYSTEM_PROGRAM,
    accounts: [
      { key: from, signer: true, writable: true },
      { key: to, signer: false, writable: true },
    ],
    data: concat([u32(2), u64(lamports), trailing]),
  };
}

/** System Program AdvanceNonceAccount, which makes a transaction durable when it comes first. */
export function advanceNonce(nonce: Uint8Array, authority: Uint8Array): InstructionSpec {
  const recentBlockhashes = fromBase58("SysvarRecentB1ockHashes11111111111111111111");
  return {
    program: SYSTEM_PROGRAM,
    accounts: [
      { key: nonce, signer: false, writable: true },
      { key: recentBlockhashes, signer: false, writable: false },
      { key: authority, signer: true, writable: false },
    ],
    data: u32(4),
  };
}

/** A ComputeBudget instruction with these data bytes. */
export function computeBudget(data: Uint8Array): InstructionSpec {
  return { program: COMPUTE_BUDGET_PROGRAM, accounts: [], data };
}
export const computeUnitLimit = (units: number): InstructionSpec =>
  computeBudget(concat([Uint8Array.of(2), u32(units)]));
export const computeUnitPrice = (microLamports: number | bigint): InstructionSpec =>
  computeBudget(concat([Uint8Array.of(3), u64(microLamports)]));
export const heapFrame = (bytes: number): InstructionSpec =>
  computeBudget(concat([Uint8Array.of(1), u32(bytes)]));
export const loadedAccountsLimit = (bytes: number): InstructionSpec =>
  computeBudget(concat([Uint8Array.of(4), u32(bytes)]));

/** A memo, to fill a transaction or to make it differ from another. */
export function memo(text: string | Uint8Array): InstructionSpec {
  const data = typeof text === "string" ? new Uint8Array(Buffer.from(text)) : text;
  return { program: MEMO_PROGRAM, accounts: [], data };
}

/** One complete signed transaction. The default payer is that of seed 7. */
export function buildTransaction(spec: TransactionSpec = {}): BuiltTransaction {
  const payer = spec.payer ?? newKeypair(7);
  const tips = spec.tips ?? [];
  const transfers = tips.map((tip) =>
    transfer(
      (tip.from ?? payer).publicKey,
      typeof tip.to === "string" ? fromBase58(tip.to) : tip.to,
      tip.lamports,
      tip.trailing,
    ),
  );
  const instructions = [
    ...(spec.instructions ?? []),
    ...transfers,
    ...(spec.extraInstructions ?? []),
  ];
  const [header, keys] = arrangeKeys(payer.publicKey, instructions);
  const index = (key: Uint8Array): number => keys.findIndex((other) => same(other, key));
  const [configMask, configWords] = encodeConfig(spec.config ?? {});
  const parts: RawTransaction = {
    version: spec.version ?? -1,
    header,
    keys,
    blockhash: spec.blockhash ?? new Uint8Array(32).fill(3),
    instructions: instructions.map((ix) => ({
      programIndex: index(ix.program),
      accounts: ix.accounts.map((account) => index(account.key)),
      data: ix.data,
    })),
    tables: spec.tables ?? [],
    configMask,
    configWords,
  };
  const sources = tips.flatMap((tip) => (tip.from === undefined ? [] : [tip.from]));
  const keypairs = [payer, ...sources, ...(spec.signers ?? [])];
  const signing = spec.sign === false ? [] : keypairs;
  const { bytes, message, signatureBytes } = serializeTransaction(parts, signing);
  return {
    bytes,
    signature: toBase58(signatureBytes),
    signatureBytes,
    message,
    parts,
    payer,
    keypairs,
    base64: Buffer.from(bytes).toString("base64"),
    base58: toBase58(bytes),
  };
}

/** Writes the parts unchecked; a key without its keypair gets a zero signature. */
export function serializeTransaction(
  parts: RawTransaction,
  keypairs: readonly Keypair[],
): { bytes: Uint8Array; message: Uint8Array; signatureBytes: Uint8Array } {
  const message = parts.version === 1 ? messageV1(parts) : messageLegacyOrV0(parts);
  const count = parts.signatureCount ?? parts.header[0];
  const signatures: Uint8Array[] = [];
  for (let i = 0; i < count; i += 1) {
    const key = parts.keys[i];
    const signer = keypairs.find((pair) => key !== undefined && same(pair.publicKey, key));
    signatures.push(signer === undefined ? new Uint8Array(64) : signer.sign(message));
  }
  const countBytes = parts.signatureCountBytes ?? compactU16(count);
  const trailing = parts.trailing ?? new Uint8Array(0);
  const bytes =
    parts.version === 1
      ? concat([message, ...signatures, trailing])
      : concat([countBytes, ...signatures, message, trailing]);
  return { bytes, message, signatureBytes: signatures[0] ?? new Uint8Array(64) };
}

function messageLegacyOrV0(parts: RawTransaction): Uint8Array {
  const chunks: Uint8Array[] = [];
  if (parts.version === 0) chunks.push(Uint8Array.of(parts.versionByte ?? 0x80));
  chunks.push(Uint8Array.from(parts.header));
  chunks.push(parts.keyCountBytes ?? compactU16(parts.keys.length), ...parts.keys);
  chunks.push(parts.blockhash);
  chunks.push(parts.instructionCountBytes ?? compactU16(parts.instructions.length));
  for (const ix of parts.instructions) {
    chunks.push(Uint8Array.of(ix.programIndex));
    chunks.push(compactU16(ix.accounts.length), Uint8Array.from(ix.accounts));
    chunks.push(compactU16(ix.data.length), ix.data);
  }
  if (parts.version === 0) {
    chunks.push(parts.tableCountBytes ?? compactU16(parts.tables.length));
    for (const table of parts.tables) {
      chunks.push(table.key);
      chunks.push(compactU16(table.writable.length), Uint8Array.from(table.writable));
      chunks.push(compactU16(table.readonly.length), Uint8Array.from(table.readonly));
    }
  }
  return concat(chunks);
}

function messageV1(parts: RawTransaction): Uint8Array {
  const chunks: Uint8Array[] = [
    Uint8Array.of(parts.versionByte ?? 0x81),
    Uint8Array.from(parts.header),
    u32(parts.configMask),
    parts.blockhash,
    parts.instructionCountBytes ?? Uint8Array.of(parts.instructions.length),
    parts.keyCountBytes ?? Uint8Array.of(parts.keys.length),
    ...parts.keys,
    ...parts.configWords.map(u32),
  ];
  for (const ix of parts.instructions) {
    const size = ix.data.length;
    chunks.push(Uint8Array.of(ix.programIndex, ix.accounts.length, size & 0xff, size >> 8));
  }
  for (const ix of parts.instructions) chunks.push(Uint8Array.from(ix.accounts), ix.data);
  return concat(chunks);
}

function encodeConfig(config: V1Config): [number, number[]] {
  let mask = 0;
  const words: number[] = [];
  if (config.priorityFeeLamports !== undefined) {
    const fee = BigInt(config.priorityFeeLamports);
    mask |= 0b11;
    words.push(Number(fee & 0xffffffffn), Number(fee >> 32n));
  }
  const rest = [config.computeUnitLimit, config.loadedAccountsBytes, config.heapBytes];
  for (const [i, word] of rest.entries()) {
    if (word === undefined) continue;
    mask |= 1 << (i + 2);
    words.push(word);
  }
  return [mask, words];
}

/** The header and the keys in the network's order: signers first, writable before readonly. */
function arrangeKeys(
  payer: Uint8Array,
  instructions: readonly InstructionSpec[],
): [readonly [number, number, number], Uint8Array[]] {
  const all = new Map<string, { key: Uint8Array; signer: boolean; writable: boolean }>();
  const note = (key: Uint8Array, signer: boolean, writable: boolean): void => {
    const name = Buffer.from(key).toString("hex");
    const known = all.get(name);
    if (known === undefined) all.set(name, { key, signer, writable });
    else {
      known.signer ||= signer;
      known.writable ||= writable;
    }
  };
  note(payer, true, true);
  for (const ix of instructions) {
    for (const account of ix.accounts) note(account.key, account.signer, account.writable);
  }
  for (const ix of instructions) note(ix.program, false, false);
  const pick = (signer: boolean, writable: boolean): Uint8Array[] =>
    [...all.values()]
      .filter((account) => account.signer === signer && account.writable === writable)
      .map((account) => account.key);
  const readonlySigners = pick(true, false);
  const signers = [...pick(true, true), ...readonlySigners];
  const readonlyRest = pick(false, false);
  return [
    [signers.length, readonlySigners.length, readonlyRest.length],
    [...signers, ...pick(false, true), ...readonlyRest],
  ];
}

export function compactU16(value: number): Uint8Array {
  if (value < 0x80) return Uint8Array.of(value);
  if (value < 0x4000) return Uint8Array.of((value & 0x7f) | 0x80, value >> 7);
  return Uint8Array.of((value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14);
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

export function u64(value: number | bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value), true);
  return bytes;
}

export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(chunks));
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
