/**
 * The accounts of the simulated cluster: executes landed transactions on LiteSVM.
 *
 * The real virtual machine verifies signatures and runs instructions; the cluster owns the slots
 * and therefore checks the age of blockhashes. If LiteSVM's binary cannot be loaded, as on an
 * unsupported platform, transactions land without execution, `executes` is false, and balances
 * include only airdrops. Durable nonces are not simulated.
 *
 * Note: of a transaction that lands without being executed, the virtual machine takes no fee; this
 * ledger does.
 */

import {
  type Address,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
  lamports,
  type Transaction,
} from "@solana/kit";
import type { LiteSVM } from "litesvm";
import { encodeKey, encodeSignature } from "../core/encoding.ts";
import { createTransactionDecoder } from "../decode/transaction.ts";
import { isFeeOnly, type LedgerError, ledgerError } from "./ledger-errors.ts";

/** A transaction as the cluster sees it before execution. */
export interface Decoded {
  /** The first signature, base58. */
  readonly signature: string;
  /** The recent blockhash, base58. */
  readonly blockhash: string;
  /** Base and priority fee, which it pays where it lands. */
  readonly feeLamports: bigint;
  readonly transaction: Transaction;
}

export interface Account {
  readonly lamports: bigint;
  readonly owner: string;
  readonly data: Uint8Array;
  readonly executable: boolean;
}

export interface Ledger {
  /** Whether transactions are executed; false if LiteSVM cannot be loaded. */
  readonly executes: boolean;
  /** Null for bytes that are not a transaction. */
  decode(bytes: Uint8Array): Decoded | null;
  /** Executes a transaction; null on success. */
  execute(decoded: Decoded): LedgerError | null;
  /** The same, but changes no account. */
  simulate(decoded: Decoded): LedgerError | null;
  /** Adds lamports to an account; null on success. */
  airdrop(address: string, amount: bigint): LedgerError | null;
  /** Lamports of an account, 0 if it does not exist. */
  balance(address: string): bigint;
  account(address: string): Account | null;
}

export const LAMPORTS_PER_SIGNATURE = 5000;
const SYSTEM_PROGRAM = encodeKey(new Uint8Array(32));

/** A ledger without accounts, on LiteSVM if it loads. */
export async function createLedger(): Promise<Ledger> {
  const machine = await loadMachine();
  return machine === null ? createBlindLedger() : createExecutingLedger(machine);
}

async function loadMachine(): Promise<LiteSVM | null> {
  try {
    const { LiteSVM: Machine } = await import("litesvm");
    // The cluster's own statuses detect duplicates, so the machine keeps no history.
    return new Machine().withSigverify(true).withBlockhashCheck(false).withTransactionHistory(0n);
  } catch {
    // No binary for this platform; `executes` reports it to the caller.
    return null;
  }
}

function createExecutingLedger(machine: LiteSVM): Ledger {
  // The cluster passes only addresses that it decoded or checked itself.
  const addressOf = (address: string): Address => address as Address;
  function charge({ transaction, feeLamports }: Decoded): void {
    const [payer] = Object.keys(transaction.signatures);
    const found = payer === undefined ? null : machine.getAccount(addressOf(payer));
    if (found?.exists !== true) return;
    const left = found.lamports > feeLamports ? found.lamports - feeLamports : 0n;
    machine.setAccount({ ...found, lamports: lamports(left) });
  }

  return {
    executes: true,
    decode,
    execute(decoded) {
      const result = machine.sendTransaction(decoded.transaction);
      if (!("err" in result)) return null;
      const error = ledgerError(result.err());
      if (isFeeOnly(error)) charge(decoded);
      return error;
    },
    simulate({ transaction }) {
      const result = machine.simulateTransaction(transaction);
      return "err" in result ? ledgerError(result.err()) : null;
    },
    airdrop(address, amount) {
      const result = machine.airdrop(addressOf(address), lamports(amount));
      return result !== null && "err" in result ? ledgerError(result.err()) : null;
    },
    balance: (address) => machine.getBalance(addressOf(address)) ?? 0n,
    account(address) {
      const found = machine.getAccount(addressOf(address));
      if (!found.exists) return null;
      return {
        lamports: found.lamports,
        owner: found.programAddress,
        data: found.data,
        executable: found.executable,
      };
    },
  };
}

/** Lands everything that decodes; for platforms without LiteSVM. */
export function createBlindLedger(): Ledger {
  const balances = new Map<string, bigint>();
  const balance = (address: string): bigint => balances.get(address) ?? 0n;
  return {
    executes: false,
    decode,
    execute: () => null,
    simulate: () => null,
    airdrop(address, amount) {
      balances.set(address, balance(address) + amount);
      return null;
    },
    balance,
    account(address) {
      const found = balances.get(address);
      if (found === undefined) return null;
      const data = new Uint8Array(0);
      return { lamports: found, owner: SYSTEM_PROGRAM, data, executable: false };
    },
  };
}

const feeDecoder = createTransactionDecoder({ tipAccounts: [], lamportsMin: -1 });

function feeOf(bytes: Uint8Array, signatureCount: number): bigint {
  const found = feeDecoder.decode(bytes);
  const priorityFeeLamports = found.kind === "accepted" ? found.priorityFeeLamports : 0;
  return BigInt(signatureCount * LAMPORTS_PER_SIGNATURE) + BigInt(priorityFeeLamports);
}

function decode(bytes: Uint8Array): Decoded | null {
  try {
    // Copied: the bytes are borrowed, and kit's decoder keeps views of its input.
    const transaction = getTransactionDecoder().decode(new Uint8Array(bytes));
    const message = getCompiledTransactionMessageDecoder().decode(transaction.messageBytes);
    const signatures = Object.values(transaction.signatures);
    const [first] = signatures;
    const blockhash = "lifetimeToken" in message ? message.lifetimeToken : undefined;
    if (first === null || first === undefined || blockhash === undefined) return null;
    const feeLamports = feeOf(bytes, signatures.length);
    return { signature: encodeSignature(first), blockhash, feeLamports, transaction };
  } catch {
    // kit throws for bytes that it cannot decode; a leader drops them silently.
    return null;
  }
}
