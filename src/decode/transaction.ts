// Hot path: one pass over the bytes, and no allocation but the verdict.
/**
 * The transaction decoder: whether leaders would take these bytes on, and whether they tip.
 *
 * What it accepts, Agave's ingress parser and sanitize rules accept (`agave-transaction-view`
 * 4.2.2, checked 2026-11), as far as bytes alone can tell: tables, balances and the age of the
 * blockhash are not judged, and signatures are not verified. It throws for no input. Bytes that
 * cannot be decoded are named as such before a missing tip is.
 */

import { FAULT } from "../core/faults.ts";
import type { Accepted, Refused, Verdict } from "../core/flow.ts";
import { SIGNATURES_MAX } from "../core/limits.ts";
import { computeBudgetFee } from "./compute-budget.ts";
import { hintFor } from "./hint.ts";
import { scanLegacyOrV0 } from "./legacy.ts";
import { begin, byteAt, createScan, fail, finish, type Scan } from "./scan.ts";
import { createTipAccounts, judgeTip, type TipAccounts } from "./tip.ts";
import { scanV1, V1_FIRST_BYTE, V1_KEYS_OFFSET } from "./v1.ts";

export interface TipRule {
  /** The accounts that a tip may go to, 32 bytes each. */
  readonly tipAccounts: readonly Uint8Array[];
  readonly lamportsMin: number;
}

export interface TransactionDecoder {
  /** The verdict on everything but the signatures. The bytes are read and not kept. */
  decode(bytes: Uint8Array): Verdict;
}

/** Throws a RangeError for a tip account that is not 32 bytes long. */
export function createTransactionDecoder(rule: TipRule): TransactionDecoder {
  const tips = createTipAccounts(rule.tipAccounts);
  const { lamportsMin } = rule;
  const scan = createScan();
  return {
    decode(bytes) {
      begin(scan, bytes);
      if (!scanTransaction(scan, tips)) {
        const refused = refusedBy(scan);
        finish(scan);
        return hintFor(bytes, refused);
      }
      const verdict = judgeTip(scan, lamportsMin) ? acceptedBy(scan) : refusedBy(scan);
      finish(scan);
      return verdict;
    },
  };
}

function scanTransaction(scan: Scan, tips: TipAccounts): boolean {
  if (scan.size === 0) return fail(scan, FAULT.empty, 0, 1);
  const first = byteAt(scan.bytes, 0);
  if (first < 0x80) return scanLegacyOrV0(scan, tips);
  if (first === V1_FIRST_BYTE) return scanV1(scan, tips);
  return fail(scan, FAULT.version_unknown, first - 0x80, 0);
}

function acceptedBy(scan: Scan): Accepted {
  return {
    kind: "accepted",
    version: scan.version,
    signatureOffset: scan.signatureOffset,
    signatureCount: scan.signatureCount,
    messageOffset: scan.messageOffset,
    messageSize: scan.messageEnd - scan.messageOffset,
    keysOffset: scan.keysOffset,
    blockhashOffset: scan.blockhashOffset,
    durableNonce: scan.durableNonce,
    tipLamports: scan.tipLamports,
    priorityFeeLamports: scan.version === 1 ? scan.feeLamports : computeBudgetFee(scan),
  };
}

function refusedBy(scan: Scan): Refused {
  return { kind: "refused", fault: scan.fault, found: scan.found, needed: scan.needed };
}

/**
 * Where the first signature of a transaction would be, read from its first two bytes; -1 where
 * there can be none. Nothing else is checked.
 */
export function peekSignatureOffset(bytes: Uint8Array): number {
  if (bytes.length < 2) return -1;
  const first = byteAt(bytes, 0);
  if (first === V1_FIRST_BYTE) {
    const count = byteAt(bytes, 1);
    const offset = bytes.length - 64 * count;
    return count >= 1 && count <= SIGNATURES_MAX && offset >= V1_KEYS_OFFSET ? offset : -1;
  }
  const fits = first >= 1 && first <= SIGNATURES_MAX && bytes.length > 64 * first;
  return fits ? 1 : -1;
}
