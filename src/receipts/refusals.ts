// Hot path: `note` runs for each refused submission of a known account.
/**
 * The latest refusals of each account, for the dashboard. What is kept is bounded twice: so many of
 * an account, so many accounts; the account that was heard of first goes first. A flood of one
 * account pushes out nothing but its own.
 */

import type { Clock } from "../core/clock.ts";
import type { Refusal, RefusalReason } from "../core/errors.ts";
import { REFUSALS_ACCOUNTS_MAX, REFUSALS_PER_ACCOUNT_MAX } from "./limits.ts";

export interface RefusalView {
  /** ISO 8601 with milliseconds. */
  readonly at: string;
  /** As the accounts have it: with which key it was tried. */
  readonly key_id: string;
  readonly reason: RefusalReason;
  readonly sentence: string;
}

export interface RefusalBook {
  readonly counters: { accountsForgotten: number };
  note(account: string, refusal: Refusal, keyId: string): void;
  /** Newest first. */
  latest(account: string): readonly RefusalView[];
}

/** A ring: the entry at `count % length` is the next to be overwritten. */
interface Ring {
  count: number;
  readonly refusals: Refusal[];
  readonly keyIds: string[];
  readonly atUnixMs: Float64Array;
}

export function createRefusalBook(
  clock: Clock,
  { accountsMax = REFUSALS_ACCOUNTS_MAX, eachMax = REFUSALS_PER_ACCOUNT_MAX } = {},
): RefusalBook {
  const counters = { accountsForgotten: 0 };
  const rings = new Map<string, Ring>();

  function newRing(account: string): Ring {
    if (rings.size >= accountsMax) {
      for (const first of rings.keys()) {
        rings.delete(first);
        counters.accountsForgotten += 1;
        break;
      }
    }
    const ring = { count: 0, refusals: [], keyIds: [], atUnixMs: new Float64Array(eachMax) };
    rings.set(account, ring);
    return ring;
  }

  /** Whoever found a key must not push the account's own refusals out: a row of those is one. */
  function isBarredAgain({ count, refusals, keyIds }: Ring, { reason }: Refusal, keyId: string) {
    if (count === 0 || reason !== "unauthorized") return false;
    const last = (count - 1) % eachMax;
    return refusals[last]?.reason === reason && keyIds[last] === keyId;
  }

  return {
    counters,
    note(account, refusal, keyId) {
      const ring = rings.get(account) ?? newRing(account);
      if (isBarredAgain(ring, refusal, keyId)) ring.count -= 1;
      const place = ring.count % eachMax;
      ring.refusals[place] = refusal;
      ring.keyIds[place] = keyId;
      ring.atUnixMs[place] = clock.unixMs();
      ring.count += 1;
    },
    latest(account) {
      const ring = rings.get(account);
      if (ring === undefined) return [];
      const views: RefusalView[] = [];
      const oldest = Math.max(0, ring.count - eachMax);
      for (let index = ring.count - 1; index >= oldest; index -= 1) {
        const refusal = ring.refusals[index % eachMax];
        const atMs = ring.atUnixMs[index % eachMax] ?? 0;
        if (refusal === undefined) continue;
        const { reason, sentence } = refusal;
        const key_id = ring.keyIds[index % eachMax] ?? "";
        views.push({ at: new Date(atMs).toISOString(), key_id, reason, sentence });
      }
      return views;
    },
  };
}
