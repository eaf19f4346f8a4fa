/**
 * Usage of an account for the dashboard. The last hour and day are read from minutes, the month
 * from hours; one scan returns the points, the regions and the keys. Percentiles come from the
 * summed buckets, never from other percentiles.
 */

import type { Queryable } from "../../accounts/database/database.ts";
import { USAGE_SLOT_BOUNDS, USAGE_WIRE_BOUNDS_NS } from "../../accounts/usage/usage-shape.ts";
import { isUuid, type StoreDeps } from "./records.ts";
import type {
  Usage,
  UsageCounts,
  UsageOverview,
  UsagePoint,
  UsageQuery,
  UsageSpan,
  UsageStats,
} from "./usage-contract.ts";

export function createUsage({ database, clock }: StoreDeps): Usage {
  return {
    async overview(accountId, query) {
      const span = spanAt(query.span, clock.unixMs());
      if (!isUuid(accountId) || (query.keyId !== null && !isUuid(query.keyId))) {
        return assemble(query.span, span, [], [], []);
      }
      const [sums, reasons] = await Promise.all([
        readSums(database, span, accountId, query),
        readReasons(database, span, accountId, query),
      ]);
      const keys = await readKeys(database, accountId, sums);
      return assemble(query.span, span, sums, reasons, keys);
    },
    async recent(accountId) {
      const toMs = Math.floor(clock.unixMs() / MINUTE_MS) * MINUTE_MS;
      const edges = !isUuid(accountId)
        ? []
        : await database.query<SumRow>(
            `select ${SUMS} from touchdown.usage_minutes
             where account_id = $1 and at >= $2 and at < $3 group by region, edge`,
            [accountId, new Date(toMs - 2 * MINUTE_MS), new Date(toMs)],
          );
      const busiestEdgeRequests = Math.max(0, ...edges.map(({ requests }) => requests));
      return { ...statsOf(edges), busiestEdgeRequests };
    },
    async overall(name) {
      const span = spanAt(name, clock.unixMs());
      return statsOf(
        await database.query<SumRow>(
          `select ${SUMS} from touchdown.usage_${span.table} where at >= $1 and at < $2`,
          [new Date(span.fromMs), new Date(span.toMs)],
        ),
      );
    },
  };
}

interface Span {
  readonly table: "minutes" | "hours";
  readonly stepMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The steps up to the one that has just started, which edges have not reported completely yet. */
function spanAt(name: UsageSpan, nowMs: number): Span {
  const { table, stepMs, stepCount } = SPANS[name];
  const toMs = Math.floor(nowMs / stepMs) * stepMs + stepMs;
  return { table, stepMs, fromMs: toMs - stepCount * stepMs, toMs };
}

/** Sums of counts; the arrays are null if there was no row. */
interface SumRow extends UsageCounts {
  readonly wire: readonly number[] | null;
  readonly slots: readonly number[] | null;
}

interface GroupRow extends SumRow {
  /** Exactly one is given: the dimension of the sums. */
  readonly step: number | null;
  readonly region: string | null;
  readonly key_id: string | null;
}

async function readSums(
  tx: Queryable,
  span: Span,
  accountId: string,
  { region, keyId }: UsageQuery,
): Promise<readonly GroupRow[]> {
  return await tx.query<GroupRow>(
    `select step, region, key_id, ${SUMS} from (
       select *, date_bin($5::interval, at, $2) as step from touchdown.usage_${span.table}
       where account_id = $1 and at >= $2 and at < $3
         and ($4::text is null or region = $4) and ($6::uuid is null or key_id = $6)
     ) as chosen
     group by grouping sets ((step), (region), (key_id))`,
    parameters(span, accountId, region, keyId),
  );
}

interface ReasonRow {
  readonly kind: "refused" | "expired" | "dropped";
  readonly reason: string;
  readonly count: number;
}

async function readReasons(
  tx: Queryable,
  span: Span,
  accountId: string,
  { region, keyId }: UsageQuery,
): Promise<readonly ReasonRow[]> {
  const [account, from, to, wanted, , key] = parameters(span, accountId, region, keyId);
  return await tx.query<ReasonRow>(
    `select kind, reason, sum(count)::bigint as count
     from touchdown.usage_reason_${span.table}
     where account_id = $1 and at >= $2 and at < $3
       and ($4::text is null or region = $4) and ($5::uuid is null or key_id = $5)
     group by kind, reason order by count desc, kind, reason limit ${REASONS_SHOWN_MAX}`,
    [account, from, to, wanted, key],
  );
}

function parameters(
  span: Span,
  accountId: string,
  region: string | null,
  keyId: string | null,
): readonly unknown[] {
  const { fromMs, toMs, stepMs } = span;
  return [accountId, new Date(fromMs), new Date(toMs), region, `${stepMs} milliseconds`, keyId];
}

interface KeyName {
  readonly id: string;
  readonly hint: string;
  readonly label: string;
}

/** Names of the account's own keys; a key that was moved away has none here. */
async function readKeys(
  tx: Queryable,
  accountId: string,
  sums: readonly GroupRow[],
): Promise<readonly KeyName[]> {
  const ids = sums.flatMap(({ key_id: id }) => (id === null ? [] : [id]));
  return await tx.query<KeyName>(
    "select id, hint, label from touchdown.keys where account_id = $1 and id = any ($2)",
    [accountId, ids],
  );
}

function assemble(
  name: UsageSpan,
  span: Span,
  sums: readonly GroupRow[],
  byReason: readonly ReasonRow[],
  keys: readonly KeyName[],
): UsageOverview {
  const steps = new Map<number, GroupRow>();
  for (const row of sums) if (row.step !== null) steps.set(row.step, row);
  const names = new Map(keys.map((key) => [key.id, key]));
  const points: UsagePoint[] = [];
  for (let atMs = span.fromMs; atMs < span.toMs; atMs += span.stepMs) {
    const row = steps.get(atMs);
    points.push({ atMs, ...(row === undefined ? NOTHING : statsOf([row])) });
  }
  return {
    span: name,
    fromMs: span.fromMs,
    toMs: span.toMs,
    stepMs: span.stepMs,
    total: statsOf([...steps.values()]),
    points,
    byRegion: sums.flatMap((row) =>
      row.region === null ? [] : [{ region: row.region, ...statsOf([row]) }],
    ),
    byKey: sums.flatMap((row) => {
      if (row.key_id === null) return [];
      const { hint, label } = names.get(row.key_id) ?? { hint: "td_…", label: "" };
      return [{ keyId: row.key_id, hint, label, ...statsOf([row]) }];
    }),
    byReason,
  };
}

function statsOf(rows: readonly SumRow[]): UsageStats {
  const total = (name: keyof UsageCounts): number =>
    rows.reduce((sum, row) => sum + (row[name] ?? 0), 0);
  const [landed, expired, dropped] = [total("landed"), total("expired"), total("dropped")];
  const ended = landed + expired + dropped;
  const wire = addUp(rows.map((row) => row.wire ?? []));
  const slots = addUp(rows.map((row) => row.slots ?? []));
  return {
    requests: total("requests"),
    accepted: total("accepted"),
    refused: total("refused"),
    bytes: total("bytes"),
    landed,
    expired,
    dropped,
    landedShare: ended === 0 ? null : landed / ended,
    wireNsP50: percentile(wire, USAGE_WIRE_BOUNDS_NS, 0.5),
    wireNsP99: percentile(wire, USAGE_WIRE_BOUNDS_NS, 0.99),
    slotDeltaP50: percentile(slots, USAGE_SLOT_BOUNDS, 0.5),
    slotDeltaP99: percentile(slots, USAGE_SLOT_BOUNDS, 0.99),
  };
}

function addUp(lists: readonly (readonly number[])[]): readonly number[] {
  const sums: number[] = [];
  for (const list of lists) {
    for (const [at, value] of list.entries()) sums[at] = (sums[at] ?? 0) + value;
  }
  return sums;
}

/** Upper bound of the bucket that holds the value of this rank; the last bound above them all. */
export function percentile(
  counts: readonly number[],
  bounds: readonly number[],
  share: number,
): number | null {
  const count = counts.reduce((sum, one) => sum + one, 0);
  if (count === 0) return null;
  let rank = Math.ceil(count * share);
  for (const [at, one] of counts.entries()) {
    rank -= one;
    if (rank <= 0) return bounds[at] ?? bounds.at(-1) ?? null;
  }
  return bounds.at(-1) ?? null;
}

const MINUTE_MS = 60_000;
const SPANS = {
  hour: { table: "minutes", stepMs: MINUTE_MS, stepCount: 60 },
  day: { table: "minutes", stepMs: 15 * MINUTE_MS, stepCount: 96 },
  month: { table: "hours", stepMs: 60 * MINUTE_MS, stepCount: 720 },
} as const;
const REASONS_SHOWN_MAX = 64;

const NAMES = ["requests", "accepted", "refused", "bytes", "landed", "expired", "dropped"];
/** One sum per bucket: many times faster than an aggregate of arrays. */
const SUMS = [
  ...NAMES.map((name) => `coalesce(sum(${name}), 0)::bigint as ${name}`),
  `${arraySum("wire", USAGE_WIRE_BOUNDS_NS.length + 1)} as wire`,
  `${arraySum("slots", USAGE_SLOT_BOUNDS.length + 1)} as slots`,
].join(", ");

function arraySum(column: string, length: number): string {
  const parts = Array.from({ length }, (_, at) => `coalesce(sum(${column}[${at + 1}]), 0)::bigint`);
  return `array[${parts.join(", ")}]`;
}

const NOTHING: UsageStats = statsOf([]);
