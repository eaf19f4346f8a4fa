/**
 * The share of each account's recent transactions that landed and succeeded.
 *
 * A transaction that does not land, or that fails, pays no tip, so the amount that an account
 * offers counts as much as its transactions pay. The share is an exponentially weighted mean over
 * the ends that the account's own transactions caused: landed, expired, dropped for an unknown
 * blockhash, or tracked to the last with a nonce, which does not expire. Ends by this edge, such as
 * a full table, a stop or a saturated leader, change nothing. Nor does a transaction that had
 * landed before it was received, which anyone can copy from a block.
 *
 * Note: `shareOf` changes only with `renew`, once a plan. Whatever is ranked in between, in a queue
 * or a round of resends, is ranked by one share of its account, so within an account the offer
 * decides.
 *
 * Decision: docs/decisions/0048-rank-by-landed-share.md
 */

import type { EndReason } from "../core/errors.ts";
import type { FinalState } from "../core/flow.ts";

export interface LandingShares {
  /** The account's share as of the last `renew`, from `SHARE_FLOOR` to 1. Hot path. */
  readonly shareOf: (account: string) => number;
  /** Records how one of its transactions ended. */
  ended(account: string, end: AccountEnd): void;
  /**
   * From now on `shareOf` includes all that ended so far; queues must be ranked anew. Returns the
   * shares that changed, valid until the next call.
   */
  renew(): ReadonlyMap<string, number>;
  /** Accounts with a share of their own. */
  readonly size: number;
}

/** How a transaction ended, as far as its account's share depends on it. */
export interface AccountEnd extends Pick<FinalState, "kind" | "error" | "reason"> {
  /** Whether it has a durable nonce, and a node that reports landings has reported none. */
  readonly isNonceUnused: boolean;
}

/**
 * Of an account without history: half, so that it competes with established accounts, and its offer
 * is not ranked above that of an account whose transactions all land.
 */
export const SHARE_START = 0.5;
/**
 * The minimum: an account that landed nothing can still raise its rank by a higher offer, so its
 * transactions are sent while leaders have room, and its first landings raise the share again.
 */
export const SHARE_FLOOR = 0.02;
/** The weight of one end: an account's last 22 transactions decide half of its share. */
export const SHARE_WEIGHT = 1 / 32;
/** Above it the account that had no end for longest starts anew. */
export const SHARE_ACCOUNTS_MAX = 10_000;

/** Ends without landing that the transaction itself caused. */
const OWN_FAULTS: ReadonlySet<EndReason | null> = new Set<EndReason>([
  "blockhash_expired",
  "blockhash_unknown",
]);

interface Entry {
  /** As of the last `renew`. */
  share: number;
  /** Including all ends. */
  next: number;
}

export function createLandingShares(): LandingShares {
  /** By account, the one whose transaction ended last at the end. */
  const shares = new Map<string, Entry>();
  /** Accounts with an end since the last `renew`, or that start anew. */
  const ended = new Set<string>();
  const changed = new Map<string, number>();

  return {
    shareOf: (account) => shares.get(account)?.share ?? SHARE_START,
    ended(account, { kind, error, reason, isNonceUnused }) {
      const isOwnFault = OWN_FAULTS.has(reason) || (reason === "tracking_ended" && isNonceUnused);
      if (kind !== "landed" && !isOwnFault) return;
      const hasPaid = kind === "landed" && error === null;
      const entry = shares.get(account) ?? { share: SHARE_START, next: SHARE_START };
      const next = entry.next + SHARE_WEIGHT * ((hasPaid ? 1 : 0) - entry.next);
      entry.next = Math.max(SHARE_FLOOR, next);
      ended.add(account);
      shares.delete(account);
      if (shares.size >= SHARE_ACCOUNTS_MAX) {
        for (const oldest of shares.keys()) {
          shares.delete(oldest);
          ended.add(oldest);
          break;
        }
      }
      shares.set(account, entry);
    },
    renew() {
      changed.clear();
      for (const account of ended) {
        const entry = shares.get(account);
        if (entry !== undefined) entry.share = entry.next;
        changed.set(account, entry?.share ?? SHARE_START);
      }
      ended.clear();
      return changed;
    },
    get size() {
      return shares.size;
    },
  };
}
