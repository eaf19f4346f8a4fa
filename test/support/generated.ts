/**
 * Thousands of transactions: valid ones of every version with arbitrary contents, and the same with
 * a few bytes changed. All are derived from the rng, so a failure can be reproduced.
 */

import type { Rng } from "./rng.ts";
import {
  advanceNonce,
  type BuiltTransaction,
  buildTransaction,
  computeBudget,
  computeUnitLimit,
  computeUnitPrice,
  concat,
  heapFrame,
  type InstructionSpec,
  type Keypair,
  loadedAccountsLimit,
  memo,
  newKeypair,
  type RawTable,
  serializeTransaction,
  type TransactionSpec,
  transfer,
  type V1Config,
} from "./transactions.ts";

const signers = Array.from({ length: 12 }, (_, i) => newKeypair(1000 + i));

/** A signed transaction that usually tips one of the accounts. */
export function generated(rng: Rng, tipAccounts: readonly Uint8Array[]): Uint8Array {
  const version = rng.pick([-1, 0, 1] as const);
  const payer = rng.pick(signers);
  const tips = Array.from({ length: rng.pick([0, 1, 1, 1, 1, 2]) }, () => ({
    to: rng.pick(tipAccounts),
    lamports: rng.pick([1, 999_999, 1_000_000, 1_000_001, 2n ** 53n, 2n ** 64n - 1n]),
    from: rng.chance(4) ? rng.pick(signers) : payer,
    trailing: rng.chance(8) ? rng.bytes(3) : new Uint8Array(0),
  }));
  const spec: TransactionSpec = {
    version,
    payer,
    tips,
    instructions: instructions(rng, payer, rng.below(4)),
    extraInstructions: instructions(rng, payer, rng.below(3)),
    signers,
    blockhash: rng.bytes(32),
    tables: version === 0 && rng.chance(2) ? tables(rng) : [],
    config: version === 1 ? config(rng) : {},
    sign: !rng.chance(16),
  };
  const built = buildTransaction(spec);
  if (spec.tables?.length === 0 || rng.chance(2)) return built.bytes;
  return intoTable(built);
}

/** The same, signed again, with every transfer to an account from a lookup table. */
function intoTable({ parts, keypairs }: BuiltTransaction): Uint8Array {
  const moved = parts.instructions.map((each) => {
    const [from = 0, , ...rest] = each.accounts;
    const isTransfer = each.data[0] === 2 && each.data.length >= 12 && each.accounts.length > 1;
    return isTransfer ? { ...each, accounts: [from, parts.keys.length, ...rest] } : each;
  });
  return serializeTransaction({ ...parts, instructions: moved }, keypairs).bytes;
}

function instructions(rng: Rng, payer: Keypair, count: number): InstructionSpec[] {
  return Array.from({ length: count }, () => {
    const key = rng.chance(3) ? rng.pick(signers).publicKey : rng.bytes(32);
    switch (rng.below(10)) {
      case 0:
        return computeUnitLimit(rng.pick([0, 1, 200_000, 1_400_000, 1_400_001, 2 ** 32 - 1]));
      case 1:
        return computeUnitPrice(rng.pick([0, 1, 999_999, 1_000_001, 2n ** 40n, 2n ** 64n - 1n]));
      case 2:
        return heapFrame(rng.pick([0, 32_768, 33_792, 33_793, 262_144, 263_168]));
      case 3:
        return loadedAccountsLimit(rng.pick([0, 1, 2 ** 32 - 1]));
      case 4:
        return computeBudget(rng.bytes(rng.below(10)));
      case 5:
        return advanceNonce(key, payer.publicKey);
      case 6:
        return transfer(payer.publicKey, key, rng.below(2 ** 32));
      case 7:
        return { program: key, accounts: accounts(rng), data: rng.bytes(rng.below(160)) };
      default:
        return memo(rng.bytes(rng.below(40)));
    }
  });
}

function accounts(rng: Rng): InstructionSpec["accounts"] {
  return Array.from({ length: rng.below(5) }, () => {
    const key = rng.chance(2) ? rng.pick(signers).publicKey : rng.bytes(32);
    const signer = signers.some((pair) => pair.publicKey === key) && rng.chance(3);
    return { key, signer, writable: rng.chance(2) };
  });
}

function tables(rng: Rng): RawTable[] {
  return Array.from({ length: rng.below(3) }, () => ({
    key: rng.bytes(32),
    writable: [...rng.bytes(rng.below(4))],
    readonly: [...rng.bytes(rng.below(rng.pick([4, 4, 80])))],
  }));
}

function config(rng: Rng): V1Config {
  return {
    ...(rng.chance(2) ? { priorityFeeLamports: rng.pick([0, 12_345, 2n ** 64n - 1n]) } : {}),
    ...(rng.chance(2) ? { computeUnitLimit: rng.below(2 ** 31) } : {}),
    ...(rng.chance(2) ? { loadedAccountsBytes: rng.below(2) } : {}),
    ...(rng.chance(3) ? { heapBytes: rng.pick([32_768, 262_144, 33_000]) } : {}),
  };
}

const TELLING = [0, 1, 2, 3, 4, 12, 13, 31, 32, 38, 39, 64, 65, 0x7f, 0x80, 0x81, 0x82, 0xff];

/** The bytes with one to three mutations: changed, truncated, moved, or mixed with others. */
export function mutated(rng: Rng, bytes: Uint8Array, other: Uint8Array): Uint8Array {
  let out: Uint8Array = new Uint8Array(bytes);
  for (let count = 1 + rng.below(3); count > 0; count -= 1) {
    // The counts and lengths are at the start of the message, after the first signature, or in the
    // instructions at the end; the rest is keys, where a change tests little.
    const at = rng.below(Math.max(1, out.length));
    const near = Math.min(out.length, rng.pick([at, rng.below(72), 65 + rng.below(8)]));
    switch (rng.below(10)) {
      case 0:
        out = out.slice(0, at);
        break;
      case 1:
        out = concat([out, rng.bytes(1 + rng.below(3))]);
        break;
      case 2:
        out = concat([out.subarray(0, near), rng.bytes(1), out.subarray(near)]);
        break;
      case 3:
        out = concat([out.subarray(0, near), out.subarray(near + 1)]);
        break;
      case 4:
        out = concat([out.subarray(0, at), other.subarray(Math.min(at, other.length))]);
        break;
      case 5:
        if (out.length > 200) out.copyWithin(165 - rng.pick([0, 32]), 69, 101);
        break;
      case 7:
        // The payer's key as a point of small order.
        if (out.length > 200) out.fill(0, 69, 101).fill(1, 69, 70);
        break;
      case 6:
        if (near < out.length) out[near] = (out[near] ?? 0) ^ (1 << rng.below(8));
        break;
      default:
        if (near < out.length) out[near] = rng.pick(TELLING);
    }
  }
  return out;
}
