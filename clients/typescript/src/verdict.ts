/** What an edge says of a transaction. */

import type { NativeVerdict } from "./addon.ts";
import { type Reason, reasonOf } from "./reasons.ts";

interface Decided {
  /** Base58; null where the edge found none. */
  readonly signature: string | null;
  /** From the transaction's last byte at the edge to this verdict. */
  readonly microseconds: number;
  /** Further transactions that the limits admit at this moment. */
  readonly credit: number;
}

/** Nothing was sent. */
export interface Refused extends Decided {
  readonly outcome: "refused";
  readonly reason: Reason;
  /** Whether the same transaction may succeed later unchanged. */
  readonly isRetryable: boolean;
}

/**
 * Sent to leaders, or a repetition of a transaction that was. `expired`: its blockhash is too old, and
 * no block contains it. `dropped`: the edge no longer follows it.
 */
export interface Accepted extends Decided {
  readonly outcome: "accepted" | "expired" | "dropped";
}

/** A block contains it: one that is not confirmed (`processed`), or a confirmed one. */
export interface InBlock extends Decided {
  readonly outcome: "processed" | "landed";
  /** Null where the edge does not know it. */
  readonly slot: number | null;
  readonly hasExecutionFailed: boolean;
}

export type Verdict = Refused | Accepted | InBlock;

export function verdictOf(native: NativeVerdict): Verdict {
  const { microseconds, credit, code } = native;
  const signature = native.signature === "" ? null : native.signature;
  const decided = { signature, microseconds, credit };
  switch (native.outcome) {
    case "refused":
      return { outcome: "refused", ...reasonOf(code), ...decided };
    case "processed":
    case "landed": {
      const { slot, hasExecutionFailed } = native;
      const { outcome } = native;
      return { outcome, slot: slot === 0 ? null : slot, hasExecutionFailed, ...decided };
    }
    case "expired":
    case "dropped":
      return { outcome: native.outcome, ...decided };
    default:
      // The format says so of states of later versions.
      return { outcome: "accepted", ...decided };
  }
}
