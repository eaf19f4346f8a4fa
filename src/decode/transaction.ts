// Hot path: one pass over the bytes; only the validation result is allocated.
/**
 * The transaction decoder: whether leaders would accept these bytes, and whether they tip.
 *
 * What it accepts, Agave's ingress parser and sanitize rules accept (`agave-transaction-view`
 * 4.2.2, checked 2026-11), as far as the bytes alone determine it: tables, balances and the age of
 * the blockhash are not validated, and signatures are not verified. No input throws. A decode error
 * takes precedence over a missing tip.
 */

import { DECODE_ERROR } from "../core/decode-errors.ts";
import type { Accepted, Rejected, ValidationResult } from "../core/flow.ts";
import { SIGNATURES_MAX } from "../core/limits.ts";
import { computeBudgetFee } from "./compute-budget.ts";
import { diagnose } from "./diagnosis.ts";
import { parseLegacyOrV0 } from "./legacy.ts";
import {
  byteAt,
  createParseState,
  fail,
  finish,
  type ParseState,
  startParse,
} from "./parse-state.ts";
import { createTipAccounts, type TipAccounts, validateTip } from "./tip.ts";
import { parseV1, V1_FIRST_BYTE, V1_KEYS_OFFSET } from "./v1.ts";

export interface TipRule {
  /** The accounts that a tip may go to, 32 bytes each. */
  readonly tipAccounts: readonly Uint8Array[];
  /** -1: no tip is required. */
  readonly lamportsMin: number;
}

export interface TransactionDecoder {
  /** Validates everything but the signatures. The bytes are read and not kept. */
  decode(bytes: Uint8Array): ValidationResult;
}

/** Throws a RangeError for a tip account that is not 32 bytes long. */
export function createTransactionDecoder(rule: TipRule): TransactionDecoder {
  const tips = createTipAccounts(rule.tipAccounts);
  const { lamportsMin } = rule;
  const state = createParseState();
  return {
    decode(bytes) {
      startParse(state, bytes);
      if (!parseTransaction(state, tips)) {
        const rejected = rejectedBy(state);
        finish(state);
        return diagnose(bytes, rejected);
      }
      const validation = validateTip(state, lamportsMin) ? acceptedBy(state) : rejectedBy(state);
      finish(state);
      return validation;
    },
  };
}

function parseTransaction(state: ParseState, tips: TipAccounts): boolean {
  if (state.size === 0) return fail(state, DECODE_ERROR.empty, 0, 1);
  const first = byteAt(state.bytes, 0);
  if (first < 0x80) return parseLegacyOrV0(state, tips);
  if (first === V1_FIRST_BYTE) return parseV1(state, tips);
  return fail(state, DECODE_ERROR.version_unknown, first - 0x80, 0);
}

function acceptedBy(state: ParseState): Accepted {
  return {
    kind: "accepted",
    version: state.version,
    signatureOffset: state.signatureOffset,
    signatureCount: state.signatureCount,
    messageOffset: state.messageOffset,
    messageSize: state.messageEnd - state.messageOffset,
    keysOffset: state.keysOffset,
    blockhashOffset: state.blockhashOffset,
    durableNonce: state.durableNonce,
    tipLamports: state.tipLamports,
    priorityFeeLamports: state.version === 1 ? state.feeLamports : computeBudgetFee(state),
  };
}

function rejectedBy(state: ParseState): Rejected {
  return { kind: "rejected", errorCode: state.errorCode, found: state.found, needed: state.needed };
}

/**
 * The offset of the first signature of a transaction, from its first two bytes; -1 where there can
 * be none. Nothing else is checked.
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
