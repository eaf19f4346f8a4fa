/**
 * Converts rows of the accounts database to entries of an edge's key table.
 *
 * The columns are those of the views that the migrations create for edges. A key whose networks
 * cannot be parsed is valid from no address: that rejects one client and admits none.
 */

import { type Networks, networksOf } from "../../runtime/networks.ts";
import type { Plan, StoredKey } from "./key.ts";

export interface PlanRow {
  readonly name: string;
  /** A numeric is returned as text. */
  readonly rate: string | number;
  readonly burst: number;
  readonly shared: boolean;
}

export interface EdgeKeyRow {
  /** 32 hexadecimal digits. */
  readonly id: string;
  readonly sha256: Buffer;
  readonly account: string;
  readonly plan: string;
  /** Milliseconds since the Unix epoch; null for never. */
  readonly expires: number | null;
  /** CIDR notation; empty for any address. */
  readonly cidrs: readonly string[] | null;
  readonly rate: string | number | null;
  readonly burst: number | null;
  readonly is_derived: boolean;
}

export function planOfRow({ name, rate, burst, shared }: PlanRow): Plan {
  return { name, ratePerSecond: Number(rate), burst: Number(burst), shared };
}

/** @throws RangeError when the key's plan is not among the plans */
export function keyOfRow(row: EdgeKeyRow, plans: ReadonlyMap<string, Plan>): StoredKey {
  const plan = plans.get(row.plan);
  if (plan === undefined) throw new RangeError(`a key is on plan ${row.plan}, which is not there`);
  const { sha256, id, account } = row;
  const policy = policyOf(row, plan);
  return { sha256, keyId: id, account, plan, policy, isDerived: row.is_derived };
}

/** Restrictions of a key on this plan; null for none. */
export function policyOf(
  row: Pick<EdgeKeyRow, "expires" | "cidrs" | "rate" | "burst">,
  plan: Plan,
): StoredKey["policy"] {
  const networks = row.cidrs === null || row.cidrs.length === 0 ? null : networksFrom(row.cidrs);
  const hasLimit = row.rate !== null || row.burst !== null;
  const limit = hasLimit
    ? {
        ratePerSecond: Number(row.rate ?? plan.ratePerSecond),
        burst: Number(row.burst ?? plan.burst),
      }
    : null;
  if (row.expires === null && networks === null && limit === null) return null;
  return { expiresUnixMs: row.expires, networks, limit };
}

function networksFrom(ranges: readonly string[]): Networks {
  try {
    return networksOf(ranges);
  } catch {
    // Postgres checked the ranges, so this is a defect; it admits no address.
    return { ranges, includes: () => false };
  }
}
