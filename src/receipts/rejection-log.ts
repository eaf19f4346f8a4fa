// Hot path: `record` runs for each rejected submission of a known account.
/**
 * The latest rejections of each account, for the dashboard. Both the rejections per account and the
 * number of accounts are bounded; the account recorded first is evicted first. A flood on one
 * account evicts only its own entries.
 */

import type { Clock } from "../core/clock.ts";
import type { Rejection, RejectionReason } from "../core/errors.ts";
import { REJECTIONS_ACCOUNTS_MAX, REJECTIONS_PER_ACCOUNT_MAX } from "./limits.ts";

export interface RejectionView {
  /** ISO 8601 with milliseconds. */
  readonly at: string;
  /** The id of the key used, as in the accounts. */
  readonly key_id: string;
  readonly reason: RejectionReason;
  readonly message: string;
}

export interface RejectionLog {
  readonly counters: { accountsEvicted: number };
  record(account: string, rejection: Rejection, keyId: string): void;
  /** Newest first. */
  latest(account: string): readonly RejectionView[];
}

/** A ring: the entry at `count % length` is the next to be overwritten. */
interface Ring {
  count: number;
  readonly rejections: Rejection[];
  readonly keyIds: string[];
  readonly atUnixMs: Float64Array;
}

export function createRejectionLog(
  clock: Clock,
  { accountsMax = REJECTIONS_ACCOUNTS_MAX, eachMax = REJECTIONS_PER_ACCOUNT_MAX } = {},
): RejectionLog {
  const counters = { accountsEvicted: 0 };
  const rings = new Map<string, Ring>();

  function newRing(account: string): Ring {
    if (rings.size >= accountsMax) {
      for (const first of rings.keys()) {
        rings.delete(first);
        counters.accountsEvicted += 1;
        break;
      }
    }
    const ring = { count: 0, rejections: [], keyIds: [], atUnixMs: new Float64Array(eachMax) };
    rings.set(account, ring);
    return ring;
  }

  /** A found key must not evict the account's own rejections: consecutive ones count as one. */
  function isRepeatedUnauthorized(
    { count, rejections, keyIds }: Ring,
    { reason }: Rejection,
    keyId: string,
  ) {
    if (count === 0 || reason !== "unauthorized") return false;
    const last = (count - 1) % eachMax;
    return rejections[last]?.reason === reason && keyIds[last] === keyId;
  }

  return {
    counters,
    record(account, rejection, keyId) {
      const ring = rings.get(account) ?? newRing(account);
      if (isRepeatedUnauthorized(ring, rejection, keyId)) ring.count -= 1;
      const place = ring.count % eachMax;
      ring.rejections[place] = rejection;
      ring.keyIds[place] = keyId;
      ring.atUnixMs[place] = clock.unixMs();
      ring.count += 1;
    },
    latest(account) {
      const ring = rings.get(account);
      if (ring === undefined) return [];
      const views: RejectionView[] = [];
      const oldest = Math.max(0, ring.count - eachMax);
      for (let index = ring.count - 1; index >= oldest; index -= 1) {
        const rejection = ring.rejections[index % eachMax];
        const atMs = ring.atUnixMs[index % eachMax] ?? 0;
        if (rejection === undefined) continue;
        const { reason, message } = rejection;
        const key_id = ring.keyIds[index % eachMax] ?? "";
        views.push({ at: new Date(atMs).toISOString(), key_id, reason, message });
      }
      return views;
    },
  };
}
