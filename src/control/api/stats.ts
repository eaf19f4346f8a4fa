/**
 * The JSON form of usage: counts, shares and percentiles, with units in the field names. Durations
 * are in microseconds, as in all responses of the service.
 */

import type { UsageOverview, UsageStats } from "../store/usage-contract.ts";
import { iso, time, z } from "../web/schema.ts";

export const statsShape = z.object({
  requests: z.number(),
  accepted: z.number(),
  refused: z.number(),
  bytes: z.number(),
  landed: z.number(),
  expired: z.number(),
  dropped: z.number(),
  landed_share: z.number().nullable(),
  receipt_to_wire_us: z.object({ p50: z.number().nullable(), p99: z.number().nullable() }),
  slot_delta: z.object({ p50: z.number().nullable(), p99: z.number().nullable() }),
});

const points = z.array(z.number());

export const overviewShape = z.object({
  range: z.enum(["hour", "day", "month"]),
  from: time,
  to: time,
  step_seconds: z.number(),
  totals: statsShape,
  /** Columns of equal length, one value per step, oldest first. */
  series: z.object({
    at: points.meta({ description: "start of the step, seconds since the Unix epoch" }),
    requests: points,
    accepted: points,
    refused: points,
    landed: points,
    expired: points,
    dropped: points,
    landed_share: z.array(z.number().nullable()),
    wire_us_p50: z.array(z.number().nullable()),
    wire_us_p99: z.array(z.number().nullable()),
    slot_delta_p50: z.array(z.number().nullable()),
    slot_delta_p99: z.array(z.number().nullable()),
  }),
  reasons: z.array(
    z.object({
      kind: z.enum(["refused", "expired", "dropped"]),
      reason: z.string(),
      count: z.number(),
    }),
  ),
  regions: z.array(statsShape.extend({ region: z.string() })),
  keys: z.array(statsShape.extend({ key_id: z.string(), hint: z.string(), label: z.string() })),
});

export function statsOf(stats: UsageStats): z.input<typeof statsShape> {
  const { requests, accepted, refused, bytes, landed, expired, dropped } = stats;
  return {
    ...{ requests, accepted, refused, bytes, landed, expired, dropped },
    landed_share: stats.landedShare,
    receipt_to_wire_us: {
      p50: microseconds(stats.wireNsP50),
      p99: microseconds(stats.wireNsP99),
    },
    slot_delta: { p50: stats.slotDeltaP50, p99: stats.slotDeltaP99 },
  };
}

export function overviewOf(overview: UsageOverview): z.input<typeof overviewShape> {
  const { points: steps } = overview;
  return {
    range: overview.span,
    from: iso(overview.fromMs),
    to: iso(overview.toMs),
    step_seconds: overview.stepMs / 1000,
    totals: statsOf(overview.total),
    series: {
      at: steps.map(({ atMs }) => atMs / 1000),
      requests: steps.map(({ requests }) => requests),
      accepted: steps.map(({ accepted }) => accepted),
      refused: steps.map(({ refused }) => refused),
      landed: steps.map(({ landed }) => landed),
      expired: steps.map(({ expired }) => expired),
      dropped: steps.map(({ dropped }) => dropped),
      landed_share: steps.map(({ landedShare }) => landedShare),
      wire_us_p50: steps.map(({ wireNsP50 }) => microseconds(wireNsP50)),
      wire_us_p99: steps.map(({ wireNsP99 }) => microseconds(wireNsP99)),
      slot_delta_p50: steps.map(({ slotDeltaP50 }) => slotDeltaP50),
      slot_delta_p99: steps.map(({ slotDeltaP99 }) => slotDeltaP99),
    },
    reasons: overview.byReason.map((row) => ({ ...row })),
    regions: overview.byRegion.map((row) => ({ ...statsOf(row), region: row.region })),
    keys: overview.byKey.map((row) => ({
      ...statsOf(row),
      key_id: row.keyId,
      hint: row.hint,
      label: row.label,
    })),
  };
}

function microseconds(ns: number | null): number | null {
  return ns === null ? null : Math.round(ns / 100) / 10;
}
