/**
 * Usage as the store returns it: counts by time, region, key and reason, and the two histograms
 * behind the percentiles. Edges write it by minute; the store also sums it by hour on write, so
 * that reading a month is as fast as reading a day.
 */

/** Numbers of requests and transactions by outcome. */
export interface UsageCounts {
  /** Requests with a valid key, rejected ones included. */
  readonly requests: number;
  /** Handed to at least one leader connection. */
  readonly accepted: number;
  readonly refused: number;
  /** Bytes of the request bodies. */
  readonly bytes: number;
  readonly landed: number;
  readonly expired: number;
  readonly dropped: number;
}

/** Percentiles are the upper bound of their bucket; null without values. */
export interface UsageStats extends UsageCounts {
  /**
   * Share of landed transactions among the accepted ones with a known outcome: 0 to 1; null without
   * any.
   */
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
  /** Start and end of the range, both on a step boundary. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
  readonly total: UsageStats;
  /** One per step of the range, empty ones included, oldest first. */
  readonly points: readonly UsagePoint[];
  readonly byRegion: readonly (UsageStats & { readonly region: string })[];
  readonly byKey: readonly (UsageStats & {
    readonly keyId: string;
    readonly hint: string;
    readonly label: string;
  })[];
  /** Rejections and transactions that did not land, most frequent first. */
  readonly byReason: readonly {
    readonly kind: "refused" | "expired" | "dropped";
    readonly reason: string;
    readonly count: number;
  }[];
}

/** hour: 60 steps of a minute; day: 96 of 15 minutes; month: 30 days by hour. */
export type UsageSpan = "hour" | "day" | "month";

export interface UsageQuery {
  readonly span: UsageSpan;
  /** null: all. */
  readonly region: string | null;
  readonly keyId: string | null;
}

export interface RecentUsage extends UsageStats {
  /** Of the edge that had most: a limit that is not shared applies to each edge. */
  readonly busiestEdgeRequests: number;
}

export interface Usage {
  overview(accountId: string, query: UsageQuery): Promise<UsageOverview>;
  /** The two minutes before the current one, for the Plan page. */
  recent(accountId: string): Promise<RecentUsage>;
  /** For operators: the range over all accounts. */
  overall(span: UsageSpan): Promise<UsageStats>;
}
