import { describe, expect, it } from "vitest";
import type { GlobalLimitsCounters } from "../../src/accounts/global-limits/sync.ts";
import type { ClusterThread } from "../../src/cluster/cluster-thread.ts";
import { ClusterCounters } from "../../src/cluster/counters.ts";
import { DECODE_ERROR, DECODE_ERROR_COUNT } from "../../src/core/decode-errors.ts";
import { encodeBase58 } from "../../src/core/encoding.ts";
import { DELIVERY_REASONS, END_REASONS, REJECTIONS } from "../../src/core/errors.ts";
import { type MetricDeps, metricSources } from "../../src/edge/metric-sources.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { HttpStats } from "../../src/http/request-tracker.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { LandCounters } from "../../src/landing/land-counters.ts";
import type { Landing } from "../../src/landing/landing.ts";
import { HANDSHAKE_RESULTS } from "../../src/native-ingress/thread-counters.ts";
import type { Receipts } from "../../src/receipts/receipts.ts";
import { RouteCounters } from "../../src/route/counters.ts";
import type { Router, RouterStatus } from "../../src/route/router.ts";
import { createHistogram, type Histogram } from "../../src/runtime/histogram.ts";
import { CLOSE_REASONS } from "../../src/send/close-policy.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import type { LeaderState } from "../../src/send/leader.ts";
import { LeaderStatsTable } from "../../src/send/leader-stats.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";
import type { LeaderView, SenderStatus } from "../../src/send/sender.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { stub } from "../support/stub.ts";

/** A histogram that recorded `count` durations. */
function histogramOf(count: number): Histogram {
  const histogram = createHistogram();
  for (let each = 0; each < count; each += 1) histogram.record(1_000);
  return histogram;
}

/** Each key with a unique number, counting from `first`. */
function numbered<Name extends string>(names: readonly Name[], first: number) {
  // The caller supplies the names.
  return Object.fromEntries(names.map((name, index) => [name, first + index])) as Record<
    Name,
    number
  >;
}

// The keys of a literal are exactly its own names.
const REJECTION_NAMES = Object.keys(REJECTIONS) as (keyof typeof REJECTIONS)[];
const DELIVERY_NAMES = Object.keys(DELIVERY_REASONS) as (keyof typeof DELIVERY_REASONS)[];
const END_NAMES = Object.keys(END_REASONS) as (keyof typeof END_REASONS)[];

const STATUS: RouterStatus = {
  slot: 300,
  slotTimeMs: 391,
  slotAgeMs: 250,
  scheduleCovers: true,
  epochs: [2],
  contacts: 305,
  delinquent: 0,
  targets: 2,
};

const peer = (state: LeaderState) =>
  stub<LeaderView>({ state, identity: "id", address: "10.0.0.1:1" });

const verifier = (keysFound: number, keysMade: number) =>
  stub<Engine["inlineVerifier"]>({ keysFound, keysMade });
const LEADER_STATS = new LeaderStatsTable({ versionOf: () => "4.2.1" });
for (let index = 0; index < 12; index += 1) {
  const stats = LEADER_STATS.stats(`leader${index}`, `10.0.0.${index}:1`);
  Object.assign(stats, { sent: 700 + index, acked: 650, rttUs: 30_000 });
}

const IDENTITY = freshIdentity();

/** Every counter that a metric reads holds a unique number. */
const LOST = { event: 1_403, datagram: 1_404, datagram_rejected: 1_405, panic: 7 };
const CUT = {
  too_many: 95,
  evicted: 89,
  framing: 96,
  empty_body: 97,
  address: 98,
  slow: 99,
  backpressure: 972,
};
const HANDSHAKES = numbered(HANDSHAKE_RESULTS, 1_330);
const each = (name: string, label: string, values: Readonly<Record<string, number>>) =>
  Object.entries(values).map(([by, value]) => [name, { [label]: by }, value] as const);

const DEPS: MetricDeps = {
  build: { version: "1.2.3", engine: "portable", region: "local" },
  upgrades: { succeeded: 1_501, failed: 1_502, lastSeconds: 1_503 },
  http: stub<HttpServer>({
    counters: stub<HttpServer["counters"]>({
      ...{ accepted: 101, requestsOpen: 105, aborted: 91, handlerErrors: 90 },
      ...{
        responsesDeferred: 92,
        responsesUnread: 93,
        connectionsEvicted: 89,
        connectionsOverAddressLimit: 98,
        connectionsReadTimeout: 99,
      },
      ...{ connections: 94, connectionsRejected: 95, closed: 96, emptyBodyClosed: 97 },
    }),
    rejections: numbered(REJECTION_NAMES, 400),
    unread: { bytes: 971, closed: 972 },
    receipts: {
      reads: { allowed: 171, limited: 172, evicted: 0 },
      longPolls: {
        pending: 1,
        reached: 173,
        timedOut: 174,
        drained: 175,
        left: 176,
        rejected: 177,
      },
      streams: {
        ...{ open: 2, opened: 181, events: 186, rejected: 182 },
        ...{ closedSlow: 183, closedKey: 184, gaps: 185 },
      },
    },
  }),
  certificates: [
    {
      protocols: ["http", "quic"],
      ...{ current: { validFromUnixMs: 1_320_500, expiresUnixMs: 1_321_500 } },
      ...{ loads: { ok: 1_322, failed: 1_323 } },
    },
  ],
  quicReceipts: { counters: { missed: 1_332 } },
  ingressThreads: {
    requests: { proxied: 1_305, rejectionRecordsDropped: 1_311 },
    handshakes: HANDSHAKES,
    quic: {
      ...{ connections: 1_321, handshakes: 1_322, connected: 1_323, handshakesRefused: 1_324 },
      ...{ retries: 1_325, streamsAborted: 1_326, datagramsDropped: 1_327, panics: 1_328 },
      ...{
        followers: 1_329,
        handshakesDelayed: 1_333,
        receiptsDropped: 1_330,
        landingsUnawaited: 1_331,
        datagramsForwarded: 1_334,
        datagramsRefused: 1_337,
        forwardsDropped: 1_335,
        streamsWithheld: 1_336,
      },
    },
    stats: [0, 1, 2].map(() => stub<HttpStats>({})),
  },
  latencies: histogramOf(3),
  keys: {
    table: { counters: { keys: 104 } },
    loads: { ok: 0, failed: 0 },
    feed: stub<NonNullable<MetricDeps["keys"]["feed"]>>({
      counters: { revision: 0, snapshots: 105, failures: 106, changes: 1_201, connected: 1_202 },
      ageMs: () => 1_203_000,
    }),
    usage: stub<NonNullable<MetricDeps["keys"]["usage"]>>({
      counters: {
        ...{ batchesWritten: 1_204, failures: 1_205, merged: 1_206 },
        ...{ refused: 1_210, waiting: 1_207, untracked: 0 },
      },
    }),
    globalLimits: stub<NonNullable<MetricDeps["keys"]["globalLimits"]>>({
      counters: stub<GlobalLimitsCounters>({ connected: 1_208, edges: 1_209 }),
    }),
  },
  tracker: {
    validations: {
      accepted: 107,
      errorCounts: Array.from({ length: DECODE_ERROR_COUNT }, (_, i) => 500 + i),
    },
  },
  router: stub<Router>({
    currentSlot: () => 301,
    counters: {
      ...new RouteCounters(),
      slotEvents: 137 + 138,
      slotEventsFarAhead: 138,
      slotEventsInvalid: 139,
      slotRewinds: 1_506,
      slotStalls: 1_507,
    },
    status: () => STATUS,
    slotSources: () => [
      { source: "grpc", ageMs: 125, lagMs: 0, followed: true },
      { source: "slot", ageMs: 375, lagMs: 250, followed: false },
    ],
  }),
  cluster: stub<ClusterThread>({
    contactsAgeMs: () => 60_500,
    deaths: 140,
    requestsRefused: 2,
    statusReporting: () => "no",
    consensus: () => "alpenglow",
    isConfirmationStalled: true,
    stakeLamports: () => 1_508,
    blockHeight: () => 129,
    counters: {
      ...new ClusterCounters(),
      socketsClosed: 3,
      slotPollFailures: 4,
      scheduleFailures: 131,
      contactFailures: 132,
      contactsEarlyRefreshes: 136,
      voteFailures: 133,
      blockFailures: 134,
      statusFailures: 133,
      heightsAccepted: 126,
      heightsImplausible: 127,
      heightsReanchored: 128,
      requestsSuppressed: 138,
      geyserClosed: 20,
      geyserGarbage: 106,
      geyserLost: 10,
      confirmationCheckFailures: 1_504,
      consensusFailures: 1_505,
    },
  }),
  engine: stub<MetricDeps["engine"]>({
    duplicates: { hits: 1103, evicted: 199 },
    records: { ingress: 61, corked: 62 },
    ingress: { takeUnreadBytesMax: () => 63 },
    validation: {
      counters: { inline: 111, handed: 112, full: 113, failed: 114, lost: 115, deaths: 116 },
      depth: 117,
      workersUp: 118,
      verifierCounters: verifier(1_000, 2_000),
    },
    inlineVerifier: verifier(20, 30),
    sender: stub<SenderStatus>({
      counters: {
        ...newSendCounters(),
        deliveriesSent: 141,
        deliveriesAcked: 142,
        deliveriesFailed: 143,
        deliveriesDropped: 144,
        deliveriesUnreported: 152,
        resendsRefused: 153,
        deliveriesQueued: 150,
        deliveriesEvicted: 151,
        connectionsOverLimit: 1_400,
        identityChanges: 149,
        connectionsAttempted: 170,
        ends: numbered(CLOSE_REASONS, 800),
        silentBeforeWindow: 172,
        connectionsAdmitted: 150,
        connectionsNotAdmitted: 6,
        connectionsFailed: 4,
        reasons: numbered(DELIVERY_NAMES, 600),
      },
      leaders: () => [peer("live"), peer("waiting"), peer("live"), peer("idle"), peer("live")],
      losses: () => ({
        ...{
          recordsLost: LOST.event,
          panics: LOST.panic,
          deliveriesQueued: 1_406,
          deliveriesEvicted: 1_407,
        },
        ...{ datagramsDropped: LOST.datagram, datagramsRejected: LOST.datagram_rejected },
      }),
      liveCount: 145,
      sendableCount: 146,
      outdatedCount: 147,
    }),
  }),
  landing: stub<Landing>({
    counters: {
      ...new LandCounters(),
      accepted: 180,
      landed: 181,
      expired: 182,
      dropped: 183,
      landedFailed: 184,
      duplicatesMerged: 185,
      resends: 186,
      resendsShed: 187,
      resendsSuperseded: 198,
      marksClearedSlotBack: 1_501,
      marksClearedUnconfirmed: 1_502,
      markClearsRefused: 1_503,
      requestsSucceeded: 188,
      requestsFailed: 189,
      requestsLate: 190,
      statusesRequested: 191,
      processed: 192,
      rolledBack: 193,
      reasons: numbered(END_NAMES, 700),
    },
    tips: new Map([
      ["Beta", { accepted: 1_509, landed: 1_510 }],
      ["Pro", { accepted: 1_511, landed: 1_512 }],
    ]),
    inFlight: 194,
    pollLagNs: 195e9,
    slotDeltas: histogramOf(7),
  }),
  leaderStats: LEADER_STATS,
  receipts: stub<Receipts>({
    durations: { decode: histogramOf(4), wire: histogramOf(5), ack: histogramOf(6) },
    count: () => 161,
    counters: {
      opened: 0,
      duplicatesMerged: 0,
      evictedExpired: 162,
      evictedCapacity: 163,
      untracked: 164,
    },
  }),
  readiness: () => ({ ok: true, checks: [] }),
  holder: { identity: IDENTITY },
  threads: {
    read: () => [
      { thread: "main", number: 0, seconds: 1_513 },
      { thread: "ingress", number: 1, seconds: 1_514 },
    ],
  },
};

async function pageOf(deps: Partial<MetricDeps> = {}) {
  const metrics = createMetrics(metricSources({ ...DEPS, ...deps }), { process: false });
  return parsePrometheus(await metrics.text());
}

type Labels = Readonly<Record<string, string>>;

describe("an edge's metrics", () => {
  it("say nothing of a database and a store that it has not", async () => {
    const keys = { ...DEPS.keys, feed: null, usage: null, globalLimits: null };
    const page = await pageOf({ keys });
    for (const name of ["keys_connected", "shared_limits_connected"]) {
      expect(page.get(`touchdown_${name}`)?.samples).toEqual([
        expect.objectContaining({ value: Number.NaN }),
      ]);
    }
  });

  it.each<readonly [string, Labels, number]>([
    ["build_info", DEPS.build, 1],
    ...each("upgrades_total", "result", { succeeded: 1_501, failed: 1_502 }),
    ["upgrade_last_seconds", {}, 1_503],
    ["ready", {}, 1],
    ["identity_info", { identity: encodeBase58(IDENTITY.publicKey) }, 1],
    ["identity_stake_lamports", {}, 1_508],
    ["thread_cpu_seconds_total", { thread: "main", number: "0" }, 1_513],
    ["thread_cpu_seconds_total", { thread: "ingress", number: "1" }, 1_514],
    ["requests_total", { outcome: "accepted" }, 101],
    ["requests_in_flight", {}, 102],
    ["requests_aborted_total", {}, 91],
    ...each("responses_deferred_total", "reason", { yield: 92, backpressure: 93 }),
    ["handler_errors_total", {}, 90],
    ["responses_unread_bytes", {}, 971],
    ["client_connections", {}, 94],
    ...each("client_connections_closed_total", "reason", CUT),
    ["response_seconds_count", {}, 3],
    ["duplicate_submissions_total", {}, 1103],
    ["dedup_evictions_total", {}, 199],
    ["ingress_threads", {}, 3],
    ["ingress_requests_proxied_total", {}, 1_305],
    ["ingress_rejection_records_dropped_total", {}, 1_311],
    ["ingress_sends_corked_total", {}, 62],
    ["quic_connections", {}, 1_321],
    ["quic_handshakes", {}, 1_322],
    ["quic_connections_total", {}, 1_323],
    ["quic_handshakes_refused_total", {}, 1_324],
    ["quic_retries_total", {}, 1_325],
    ["quic_streams_aborted_total", {}, 1_326],
    ["quic_datagrams_dropped_total", {}, 1_327],
    ["quic_datagrams_refused_total", {}, 1_337],
    ["quic_datagrams_forwarded_total", {}, 1_334],
    ["quic_forwards_dropped_total", {}, 1_335],
    ["quic_streams_withheld_total", {}, 1_336],
    ["quic_panics_total", {}, 1_328],
    ["quic_followers", {}, 1_329],
    ["quic_handshakes_delayed_total", {}, 1_333],
    ["quic_receipts_dropped_total", {}, 1_330],
    ["quic_landings_unawaited_total", {}, 1_331],
    ["quic_receipts_missed_total", {}, 1_332],
    ["engine_events_unread_bytes", {}, 63],
    ...each("tls_handshakes_total", "result", {
      ...{ full: HANDSHAKES.full, resumed: HANDSHAKES.resumed, failed: HANDSHAKES.failed },
      ...{ not_tls: HANDSHAKES.notTls, timed_out: HANDSHAKES.timedOut },
      aborted: HANDSHAKES.aborted,
    }),
    ["tls_certificate_not_before_timestamp_seconds", { protocol: "http" }, 1_320.5],
    ["tls_certificate_not_before_timestamp_seconds", { protocol: "quic" }, 1_320.5],
    ["tls_certificate_expiry_timestamp_seconds", { protocol: "http" }, 1_321.5],
    ["tls_certificate_expiry_timestamp_seconds", { protocol: "quic" }, 1_321.5],
    ...["http", "quic"].flatMap((protocol) =>
      each("tls_certificate_loads_total", "result", { ok: 1_322, failed: 1_323 }).map(
        ([name, labels, value]) => [name, { protocol, ...labels }, value] as const,
      ),
    ),
    ["keys", {}, 104],
    ...each("keys_loads_total", "result", { ok: 105, failed: 106 }),
    ["validations_total", { result: "accepted" }, 107],
    ...each("decoded_total", "path", { inline: 111, worker: 112, ingress_thread: 61 }),
    ["decode_ring_full_total", {}, 113],
    ["decode_worker_restarts_total", {}, 116],
    ["decode_ring_depth", {}, 117],
    ["decode_workers", {}, 118],
    ["verify_cache_lookups_total", { result: "hit" }, 1_020],
    ["verify_cache_lookups_total", { result: "miss" }, 2_030],
    ["slot", {}, 301],
    ["slot_age_seconds", {}, 0.25],
    ["slot_seconds", {}, 0.391],
    ["slot_source_age_seconds", { source: "slot" }, 0.375],
    ["slot_source_lag_seconds", { source: "slot" }, 0.25],
    ["slot_source_followed", { source: "grpc" }, 1],
    ["slot_source_followed", { source: "slot" }, 0],
    ["schedule_covers", {}, 1],
    ["contacts", {}, 305],
    ["contacts_age_seconds", {}, 60.5],
    ["block_height", {}, 129],
    ...each("block_heights_total", "result", { accepted: 126, implausible: 127, reanchored: 128 }),
    ["rpc_requests_suppressed_total", {}, 138],
    ["cluster_thread_restarts_total", {}, 140],
    ["feed_failures_total", { feed: "slots" }, 7],
    ["feed_failures_total", { feed: "schedule" }, 131],
    ["feed_failures_total", { feed: "contacts" }, 132],
    ["feed_failures_total", { feed: "votes" }, 133],
    ["feed_failures_total", { feed: "blocks" }, 134],
    ["feed_failures_total", { feed: "statuses" }, 135],
    ["feed_failures_total", { feed: "grpc" }, 136],
    ["feed_failures_total", { feed: "confirmation" }, 1_504],
    ["feed_failures_total", { feed: "consensus" }, 1_505],
    ...each("consensus", "consensus", { unknown: 0, tower_bft: 0, alpenglow: 1 }),
    ["confirmation_stalled", {}, 1],
    ...each("slot_corrections_total", "kind", { went_back: 1_506, stood_still: 1_507 }),
    ...each("marks_cleared_total", "reason", {
      ...{ slot_back: 1_501, unconfirmed: 1_502, refused: 1_503 },
    }),
    ["deliveries_sent_total", {}, 141],
    ["deliveries_queued_total", {}, 1_556],
    ["deliveries_evicted_total", {}, 1_558],
    ["deliveries_unreported_total", {}, 152],
    ["resends_refused_total", {}, 153],
    ...each("deliveries_ended_total", "outcome", { acked: 142, failed: 143, dropped: 144 }),
    ["connections_live", {}, 145],
    ["connections_sendable", {}, 146],
    ["connection_probes_failed_total", {}, 172],
    ["connections_ended_total", { reason: "closed" }, 800],
    ["connections_outdated", {}, 147],
    ["connections_over_limit_total", {}, 1_400],
    ["identity_changes_total", {}, 149],
    ...each("engine_drops_total", "kind", LOST),
    ["connection_attempts_total", { result: "live" }, 150],
    ["connection_attempts_total", { result: "failed" }, 10],
    ...each("leader_connections", "state", { live: 3, waiting: 1, idle: 1, connecting: 0 }),
    ["decode_seconds_count", {}, 4],
    ["first_send_seconds_count", {}, 5],
    ["delivery_ack_seconds_count", {}, 6],
    ["transactions_accepted_total", {}, 180],
    ...each("transactions_total", "outcome", { landed: 181, expired: 182, dropped: 183 }),
    ["transactions_landed_with_error_total", {}, 184],
    ...each("tips_accepted_lamports_total", "plan", { Beta: 1_509, Pro: 1_511 }),
    ...each("tips_landed_lamports_total", "plan", { Beta: 1_510, Pro: 1_512 }),
    ["duplicate_submissions_merged_total", {}, 185],
    ...each("resends_total", "result", { sent: 186, shed: 187, superseded: 198 }),
    ...each("status_requests_total", "result", { answered: 188, failed: 189, late: 190 }),
    ["statuses_requested_total", {}, 191],
    ...each("processed_total", "result", { seen: 192, rolled_back: 193 }),
    ["transactions_in_flight", {}, 194],
    ["status_lag_seconds", {}, 195],
    ["landing_slots_count", {}, 7],
    ["receipts", {}, 161],
    ["receipts_evicted_total", { reason: "expired" }, 162],
    ["receipts_evicted_total", { reason: "capacity" }, 163],
    ["receipts_untracked_total", {}, 164],
    ["receipt_reads_total", { outcome: "admitted" }, 171],
    ["receipt_reads_total", { outcome: "limited" }, 172],
    ["receipt_long_polls", {}, 1],
    ["receipt_long_polls_total", { outcome: "reached" }, 173],
    ["receipt_long_polls_total", { outcome: "timed_out" }, 174],
    ["receipt_long_polls_total", { outcome: "drained" }, 175],
    ["receipt_long_polls_total", { outcome: "aborted" }, 176],
    ["receipt_long_polls_total", { outcome: "rejected" }, 177],
    ["receipt_streams", {}, 2],
    ["receipt_streams_total", { event: "opened" }, 181],
    ["receipt_streams_total", { event: "rejected" }, 182],
    ["receipt_streams_total", { event: "closed_slow" }, 183],
    ["receipt_streams_total", { event: "closed_key" }, 184],
    ["receipt_streams_total", { event: "gap" }, 185],
    ["receipt_events_total", {}, 186],
  ])("show in touchdown_%s %j what its stage counts: %d", async (name, labels, value) => {
    expect(seriesValue(await pageOf(), `touchdown_${name}`, labels)).toBe(value);
  });

  it("include ten of twelve leaders: those with the most deliveries", async () => {
    const page = await pageOf();
    const named = (metric: string): readonly string[] => {
      const samples = page.get(`touchdown_leader_${metric}`)?.samples ?? [];
      return [...new Set(samples.map(({ labels }) => labels["leader"] ?? ""))].sort();
    };
    const most = Array.from({ length: 10 }, (_, index) => `leader${index + 2}`).sort();
    for (const metric of ["round_trip_seconds", "deliveries_total", "landed_share"]) {
      expect(named(metric)).toEqual(most);
    }
  });

  it("include every rejection, every decode error and every drop reason", async () => {
    const page = await pageOf();
    const values = (metric: string, label: string, names: readonly string[]): number[] =>
      names.map((name) => seriesValue(page, `touchdown_${metric}`, { [label]: name }));
    const counted = (first: number, count: number): number[] =>
      Array.from({ length: count }, (_, index) => first + index);
    expect(values("requests_total", "outcome", REJECTION_NAMES)).toEqual(
      counted(400, REJECTION_NAMES.length),
    );
    expect(values("validations_total", "result", Object.keys(DECODE_ERROR))).toEqual(
      counted(500, DECODE_ERROR_COUNT),
    );
    expect(values("deliveries_unacknowledged_total", "reason", DELIVERY_NAMES)).toEqual(
      counted(600, DELIVERY_NAMES.length),
    );
    expect(values("transactions_lost_total", "reason", END_NAMES)).toEqual(
      counted(700, END_NAMES.length),
    );
  });

  it("omit unknown values before the cluster has responded", async () => {
    const unknown = { ...STATUS, slot: null, slotAgeMs: null, scheduleCovers: false };
    const page = await pageOf({
      router: stub<Router>({
        currentSlot: () => null,
        status: () => unknown,
        slotSources: () => [],
        counters: new RouteCounters(),
      }),
      cluster: stub<ClusterThread>({
        contactsAgeMs: () => null,
        deaths: 0,
        requestsRefused: 0,
        counters: new ClusterCounters(),
        statusReporting: () => "unknown",
        consensus: () => "unknown",
        isConfirmationStalled: false,
        blockHeight: () => null,
        stakeLamports: () => null,
      }),
      readiness: () => ({ ok: false, checks: [] }),
    });
    const names = [
      "slot",
      "slot_age_seconds",
      "schedule_covers",
      "contacts_age_seconds",
      "ready",
      "node_reports_statuses",
      "block_height",
      "identity_stake_lamports",
    ];
    const values = names.map((name) => seriesValue(page, `touchdown_${name}`));
    expect(values).toEqual([0, Number.NaN, 0, Number.NaN, 0, Number.NaN, Number.NaN, Number.NaN]);
  });
});
