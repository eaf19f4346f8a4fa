/**
 * What the store tells about usage: counts by time, region, key and reason, and the two histograms
 * behind the percentiles. Edges write it by the minute; the store adds it up by hours as it comes,
 * so that a month is as quick to read as a day.
 */

/** How many requests and transactions, by what became of them. */
export interface UsageCounts {
  /** Requests with a valid key, refused ones included. */
  readonly requests: number;
  /** Handed to at least one leader's connection. */
  readonly accepted: number;
  readonly refused: number;
  /** Bytes of the requests' bodies. */
  readonly bytes: number;
  readonly landed: number;
  readonly expired: number;
  readonly dropped: number;
}

/** Percentiles are the upper bound of the bucket they fall in; null without a value. */
export interface UsageStats extends UsageCounts {
  /** Of the accepted whose end is known, how many landed: 0 to 1; null without any. */
  readonly landedShare: number | null;
  /** Receipt to wire, in nanoseconds. */
  readonly wireNsP50: number | null;
  readonly wireNsP99: number | null;
  /** Slots from receipt to landing. */
  readonly slotDeltaP50: number | null;
  readonly slotDeltaP99: number | null;
}

export interface UsagePoint extends UsageStats {
  /** Start of the step. */
  readonly atMs: number;
}

export interface UsageOverview {
  readonly span: UsageSpan;
  /** Of the span, both on a step's boundary. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly total: UsageStats;
  /** One for every step of the span, empty ones included, oldest first. */
  readonly points: readonly UsagePoint[];
  readonly byRegion: readonly (UsageStats & { readonly region: string })[];
  readonly byKey: readonly (UsageStats & {
    readonly keyId: string;
    readonly hint: string;
    readonly label: string;
  })[];
  /** Refusals and ends without landing, most frequent first. */
  readonly byReason: readonly {
    readonly kind: "refused" | "expired" | "dropped";
    readonly reason: string;
    readonly count: number;
  }[];
}

/** hour: 60 steps of a minute; day: 96 of a quarter; month: 30 days by the hour. */
export type UsageSpan = "hour" | "day" | "month";

export interface UsageQuery {
  readonly span: UsageSpan;
  /** null: all. */
  readonly region: string | null;
  readonly keyId: string | null;
}

export interface Usage {
  overview(accountId: string, query: UsageQuery): Promise<UsageOverview>;
  /** Requests of the current minute and the one before, for the Plan page. */
  recent(accountId: string): Promise<UsageStats>;
  /** For operators: the span over all accounts. */
  overall(span: UsageSpan): Promise<UsageStats>;
}
