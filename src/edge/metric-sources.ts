/**
 * The source of each metric in the table: the stages' own plain counters, read at each scrape. A
 * row of the table without a source here does not compile.
 */

import type { ClusterThread } from "../cluster/cluster-thread.ts";
import { NS_PER_S } from "../core/clock.ts";
import { DECODE_ERROR } from "../core/decode-errors.ts";
import { encodeBase58 } from "../core/encoding.ts";
import type { Engine } from "../engine/engine.ts";
import type { Landing } from "../landing/landing.ts";
import type { IngressThreads } from "../native-ingress/ingress-threads.ts";
import { HANDSHAKE_RESULTS, QUIC_COUNTERS } from "../native-ingress/thread-counters.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { Router } from "../route/router.ts";
import type { SlotSourceStatus } from "../route/slots.ts";
import type { Histogram } from "../runtime/histogram.ts";
import { sumOf } from "../runtime/shared-counters.ts";
import type { LeaderStatsTable } from "../send/leader-stats.ts";
import type { Readiness } from "../telemetry/admin.ts";
import { type MetricSources, samplesBy } from "../telemetry/metrics.ts";
import { createThreadCpuReader, type ThreadCpuReader } from "../telemetry/thread-cpu.ts";
import type { CertificateHolder } from "./certificate.ts";
import type { Clients } from "./clients.ts";
import type { UpgradeCounts } from "./handover.ts";
import type { IdentityHolder } from "./identity.ts";
import type { EdgeKeys } from "./keys.ts";
import type { QuicReceipts } from "./quic-receipts.ts";
import type { Tracker } from "./tracker.ts";

type KeySource = Pick<EdgeKeys, "loads" | "feed" | "usage" | "globalLimits"> & {
  readonly table: { readonly counters: { readonly keys: number } };
};

type CertificateState = {
  readonly protocols: CertificateHolder["protocols"];
  readonly current: Pick<CertificateHolder["current"], "validFromUnixMs" | "expiresUnixMs">;
  readonly loads: CertificateHolder["loads"];
};

type IngressThreadsSource = Pick<IngressThreads, "stats" | "requests" | "handshakes" | "quic">;

export interface MetricDeps {
  readonly build: { readonly version: string; readonly engine: string; readonly region: string };
  readonly http: Clients;
  /** null without ingress threads. */
  readonly ingressThreads: IngressThreadsSource | null;
  /** None without TLS. */
  readonly certificates: readonly CertificateState[];
  /** null where no QUIC clients are served. */
  readonly quicReceipts: Pick<QuicReceipts, "counters"> | null;
  readonly latencies: Histogram;
  readonly keys: KeySource;
  readonly tracker: Pick<Tracker, "validations">;
  readonly router: Router;
  readonly cluster: ClusterThread;
  readonly engine: Pick<
    Engine,
    "sender" | "duplicates" | "validation" | "inlineVerifier" | "records"
  > & { readonly ingress: { takeUnreadBytesMax(): number } | null };
  readonly landing: Landing;
  readonly leaderStats: LeaderStatsTable;
  readonly receipts: Receipts;
  readonly readiness: () => Readiness;
  readonly upgrades: Readonly<UpgradeCounts>;
  readonly holder: Pick<IdentityHolder, "identity">;
  /** Absent: that of this process. */
  readonly threads?: ThreadCpuReader;
}

export function metricSources(deps: MetricDeps): MetricSources {
  return {
    ...processSources(deps),
    ...httpSources(deps),
    ...decodeSources(deps),
    ...leaderSources(deps),
    ...sendSources(deps),
    ...landSources(deps),
    ...leaderStatsSources(deps),
    ...receiptSources(deps),
  };
}

function processSources({ build, readiness, holder, cluster, ...deps }: MetricDeps) {
  const threads = deps.threads ?? createThreadCpuReader();
  return {
    touchdown_build_info: () => [{ labels: build, value: 1 }],
    touchdown_ready: () => (readiness().ok ? 1 : 0),
    touchdown_identity_info: () => [
      { labels: { identity: encodeBase58(holder.identity.publicKey) }, value: 1 },
    ],
    touchdown_identity_stake_lamports: () => cluster.stakeLamports() ?? Number.NaN,
    touchdown_thread_cpu_seconds_total: () =>
      threads.read().map(({ thread, number, seconds }) => ({
        labels: { thread, number: String(number) },
        value: seconds,
      })),
    touchdown_upgrades_total: () => {
      const { succeeded, failed } = deps.upgrades;
      return samplesBy("result", { succeeded, failed });
    },
    touchdown_upgrade_last_seconds: () => deps.upgrades.lastSeconds,
  } satisfies Partial<MetricSources>;
}

function httpSources(deps: MetricDeps) {
  const { http, ingressThreads, certificates, latencies, engine, keys } = deps;
  return {
    touchdown_requests_total: () => [
      { labels: { outcome: "accepted" }, value: http.counters.accepted },
      ...samplesBy("outcome", http.rejections),
    ],
    touchdown_requests_in_flight: () =>
      http.counters.requestsOpen - http.receipts.longPolls.pending - http.receipts.streams.open,
    touchdown_response_seconds: () => latencies,
    ...clientSources(http),
    touchdown_duplicate_submissions_total: () => engine.duplicates.hits,
    touchdown_dedup_evictions_total: () => engine.duplicates.evicted,
    ...ingressThreadSources(deps),
    ...tlsSources(ingressThreads, certificates),
    ...quicSources(ingressThreads, deps.quicReceipts),
    touchdown_keys: () => keys.table.counters.keys,
    ...keySources(keys),
  } satisfies Partial<MetricSources>;
}

function ingressThreadSources({ ingressThreads, engine }: MetricDeps) {
  return {
    touchdown_ingress_threads: () => ingressThreads?.stats.length ?? 0,
    touchdown_ingress_requests_proxied_total: () => ingressThreads?.requests.proxied ?? 0,
    touchdown_ingress_rejection_records_dropped_total: () =>
      ingressThreads?.requests.rejectionRecordsDropped ?? 0,
    touchdown_engine_events_unread_bytes: () => engine.ingress?.takeUnreadBytesMax() ?? 0,
    touchdown_ingress_sends_corked_total: () => engine.records.corked,
  } satisfies Partial<MetricSources>;
}

function tlsSources(
  ingressThreads: IngressThreadsSource | null,
  certificates: readonly CertificateState[],
) {
  const secondsOf = (time: keyof CertificateState["current"]) => () =>
    certificates.flatMap(({ protocols, current }) =>
      protocols.map((protocol) => ({ labels: { protocol }, value: current[time] / 1000 })),
    );
  return {
    touchdown_tls_handshakes_total: () => {
      const { full, resumed, failed, notTls, timedOut, aborted } =
        ingressThreads?.handshakes ?? sumOf(HANDSHAKE_RESULTS, []);
      const rest = { not_tls: notTls, timed_out: timedOut, aborted };
      return samplesBy("result", { full, resumed, failed, ...rest });
    },
    touchdown_tls_certificate_not_before_timestamp_seconds: secondsOf("validFromUnixMs"),
    touchdown_tls_certificate_expiry_timestamp_seconds: secondsOf("expiresUnixMs"),
    touchdown_tls_certificate_loads_total: () =>
      certificates.flatMap(({ protocols, loads }) =>
        protocols.flatMap((protocol) =>
          samplesBy("result", loads).map(({ labels, value }) => ({
            labels: { protocol, ...labels },
            value,
          })),
        ),
      ),
  } satisfies Partial<MetricSources>;
}

function quicSources(
  ingressThreads: IngressThreadsSource | null,
  receipts: MetricDeps["quicReceipts"],
) {
  const quic = ingressThreads?.quic ?? sumOf(QUIC_COUNTERS, []);
  return {
    touchdown_quic_connections: () => quic.connections,
    touchdown_quic_handshakes: () => quic.handshakes,
    touchdown_quic_followers: () => quic.followers,
    touchdown_quic_connections_total: () => quic.connected,
    touchdown_quic_handshakes_refused_total: () => quic.handshakesRefused,
    touchdown_quic_handshakes_delayed_total: () => quic.handshakesDelayed,
    touchdown_quic_retries_total: () => quic.retries,
    touchdown_quic_streams_aborted_total: () => quic.streamsAborted,
    touchdown_quic_datagrams_dropped_total: () => quic.datagramsDropped,
    touchdown_quic_datagrams_refused_total: () => quic.datagramsRefused,
    touchdown_quic_datagrams_forwarded_total: () => quic.datagramsForwarded,
    touchdown_quic_forwards_dropped_total: () => quic.forwardsDropped,
    touchdown_quic_receipts_dropped_total: () => quic.receiptsDropped,
    touchdown_quic_receipts_missed_total: () => receipts?.counters.missed ?? 0,
    touchdown_quic_streams_withheld_total: () => quic.streamsWithheld,
    touchdown_quic_landings_unawaited_total: () => quic.landingsUnawaited,
    touchdown_quic_panics_total: () => quic.panics,
  } satisfies Partial<MetricSources>;
}

function clientSources({ counters, unread }: Pick<Clients, "counters" | "unread">) {
  return {
    touchdown_requests_aborted_total: () => counters.aborted,
    touchdown_responses_deferred_total: () =>
      samplesBy("reason", {
        yield: counters.responsesDeferred,
        backpressure: counters.responsesUnread,
      }),
    touchdown_handler_errors_total: () => counters.handlerErrors,
    touchdown_responses_unread_bytes: () => unread.bytes,
    touchdown_client_connections: () => counters.connections,
    touchdown_client_connections_closed_total: () =>
      samplesBy("reason", {
        too_many: counters.connectionsRejected,
        evicted: counters.connectionsEvicted,
        address: counters.connectionsOverAddressLimit,
        slow: counters.connectionsReadTimeout,
        framing: counters.closed,
        empty_body: counters.emptyBodyClosed,
        backpressure: unread.closed,
      }),
  } satisfies Partial<MetricSources>;
}

function keySources({ loads, feed, usage, globalLimits }: KeySource) {
  return {
    touchdown_keys_loads_total: () =>
      samplesBy(
        "result",
        feed === null ? loads : { ok: feed.counters.snapshots, failed: feed.counters.failures },
      ),
    touchdown_keys_connected: () => feed?.counters.connected ?? Number.NaN,
    touchdown_keys_age_seconds: () => seconds(feed?.ageMs() ?? null),
    touchdown_keys_changes_total: () => feed?.counters.changes ?? 0,
    touchdown_usage_batches_total: () =>
      samplesBy("result", {
        written: usage?.counters.batchesWritten ?? 0,
        failed: usage?.counters.failures ?? 0,
        merged: usage?.counters.merged ?? 0,
        refused: usage?.counters.refused ?? 0,
      }),
    touchdown_usage_batches_pending: () => usage?.counters.waiting ?? 0,
    touchdown_shared_limits_connected: () => globalLimits?.counters.connected ?? Number.NaN,
    touchdown_shared_limits_edges: () => globalLimits?.counters.edges ?? 0,
  } satisfies Partial<MetricSources>;
}

function decodeSources({ tracker, engine }: MetricDeps) {
  const { validation, inlineVerifier } = engine;
  return {
    touchdown_validations_total: () => [
      { labels: { result: "accepted" }, value: tracker.validations.accepted },
      ...Object.entries(DECODE_ERROR).map(([result, code]) => ({
        labels: { result },
        value: tracker.validations.errorCounts[code] ?? 0,
      })),
    ],
    touchdown_decoded_total: () => [
      { labels: { path: "inline" }, value: validation.counters.inline },
      { labels: { path: "worker" }, value: validation.counters.handed },
      { labels: { path: "ingress_thread" }, value: engine.records.ingress },
    ],
    touchdown_decode_ring_depth: () => validation.depth,
    touchdown_decode_ring_full_total: () => validation.counters.full,
    touchdown_decode_workers: () => validation.workersUp,
    touchdown_decode_worker_restarts_total: () => validation.counters.deaths,
    touchdown_verify_cache_lookups_total: () => {
      const workers = validation.verifierCounters;
      return [
        { labels: { result: "hit" }, value: inlineVerifier.keysFound + workers.keysFound },
        { labels: { result: "miss" }, value: inlineVerifier.keysMade + workers.keysMade },
      ];
    },
  } satisfies Partial<MetricSources>;
}

function leaderSources({ router, cluster }: MetricDeps) {
  return {
    touchdown_slot: () => router.currentSlot() ?? 0,
    touchdown_slot_age_seconds: () => seconds(router.status().slotAgeMs),
    touchdown_slot_events_total: () => {
      const { slotEvents, slotEventsFarAhead, slotEventsInvalid } = router.counters;
      return samplesBy("result", {
        accepted: slotEvents - slotEventsFarAhead,
        too_far_ahead: slotEventsFarAhead,
        invalid: slotEventsInvalid,
        lost: cluster.counters.slotEventsLost,
      });
    },
    touchdown_slot_corrections_total: () => {
      const { slotRewinds, slotStalls } = router.counters;
      return samplesBy("kind", { went_back: slotRewinds, stood_still: slotStalls });
    },
    touchdown_slot_seconds: () => seconds(router.status().slotTimeMs),
    touchdown_consensus: () => {
      const kinds = { unknown: 0, tower_bft: 0, alpenglow: 0 };
      return samplesBy("consensus", { ...kinds, [cluster.consensus()]: 1 });
    },
    touchdown_confirmation_stalled: () => (cluster.isConfirmationStalled ? 1 : 0),
    touchdown_slot_source_age_seconds: () => bySource(router, ({ ageMs }) => seconds(ageMs)),
    touchdown_slot_source_lag_seconds: () => bySource(router, ({ lagMs }) => seconds(lagMs)),
    touchdown_slot_source_followed: () => bySource(router, ({ followed }) => (followed ? 1 : 0)),
    touchdown_schedule_covers: () => (router.status().scheduleCovers ? 1 : 0),
    touchdown_contacts: () => router.status().contacts,
    touchdown_contacts_age_seconds: () => seconds(cluster.contactsAgeMs()),
    touchdown_rpc_requests_suppressed_total: () => cluster.counters.requestsSuppressed,
    touchdown_contacts_early_refreshes_total: () => cluster.counters.contactsEarlyRefreshes,
    touchdown_block_height: () => cluster.blockHeight() ?? Number.NaN,
    touchdown_block_heights_total: () => {
      const { heightsAccepted, heightsImplausible, heightsReanchored } = cluster.counters;
      return samplesBy("result", {
        accepted: heightsAccepted,
        implausible: heightsImplausible,
        reanchored: heightsReanchored,
      });
    },
    touchdown_cluster_thread_restarts_total: () => cluster.deaths,
    touchdown_feed_failures_total: () => {
      const { counters } = cluster;
      return samplesBy("feed", {
        slots: counters.socketsClosed + counters.slotPollFailures,
        schedule: counters.scheduleFailures,
        contacts: counters.contactFailures,
        votes: counters.voteFailures,
        blocks: counters.blockFailures,
        statuses: counters.statusFailures + cluster.requestsRefused,
        confirmation: counters.confirmationCheckFailures,
        consensus: counters.consensusFailures,
        grpc: counters.geyserClosed + counters.geyserGarbage + counters.geyserLost,
      });
    },
  } satisfies Partial<MetricSources>;
}

function sendSources({ engine: { sender }, receipts }: MetricDeps) {
  return {
    touchdown_deliveries_sent_total: () => sender.counters.deliveriesSent,
    touchdown_deliveries_queued_total: () =>
      sender.counters.deliveriesQueued + sender.losses().deliveriesQueued,
    touchdown_deliveries_evicted_total: () =>
      sender.counters.deliveriesEvicted + sender.losses().deliveriesEvicted,
    touchdown_deliveries_ended_total: () => {
      const { deliveriesAcked, deliveriesFailed, deliveriesDropped } = sender.counters;
      return samplesBy("outcome", {
        acked: deliveriesAcked,
        failed: deliveriesFailed,
        dropped: deliveriesDropped,
      });
    },
    touchdown_deliveries_unacknowledged_total: () => samplesBy("reason", sender.counters.reasons),
    touchdown_resends_refused_total: () => sender.counters.resendsRefused,
    touchdown_deliveries_unreported_total: () => sender.counters.deliveriesUnreported,
    touchdown_leader_connections: () => {
      const states = { idle: 0, connecting: 0, waiting: 0, live: 0 };
      for (const { state } of sender.leaders()) states[state] += 1;
      return samplesBy("state", states);
    },
    touchdown_connections_live: () => sender.liveCount,
    touchdown_connections_sendable: () => sender.sendableCount,
    touchdown_connections_outdated: () => sender.outdatedCount,
    touchdown_connections_over_limit_total: () => sender.counters.connectionsOverLimit,
    touchdown_identity_changes_total: () => sender.counters.identityChanges,
    touchdown_connection_attempts_total: () => {
      const { connectionsAdmitted, connectionsNotAdmitted, connectionsFailed } = sender.counters;
      return samplesBy("result", {
        live: connectionsAdmitted,
        failed: connectionsNotAdmitted + connectionsFailed,
      });
    },
    touchdown_connections_ended_total: () => samplesBy("reason", sender.counters.ends),
    touchdown_connection_probes_failed_total: () => sender.counters.silentBeforeWindow,
    touchdown_engine_drops_total: () => {
      const { recordsLost, datagramsDropped, datagramsRejected, panics } = sender.losses();
      return samplesBy("kind", {
        event: recordsLost,
        datagram: datagramsDropped,
        datagram_rejected: datagramsRejected,
        panic: panics,
      });
    },
    touchdown_first_send_seconds: () => receipts.durations.wire,
    touchdown_delivery_ack_seconds: () => receipts.durations.ack,
  } satisfies Partial<MetricSources>;
}

const REPORTED = { yes: 1, no: 0, unknown: Number.NaN } as const;

function landSources({ landing, cluster }: MetricDeps) {
  const { counters } = landing;
  return {
    touchdown_transactions_accepted_total: () => counters.accepted,
    touchdown_transactions_in_flight: () => landing.inFlight,
    touchdown_transactions_total: () => {
      const { landed, expired, dropped } = counters;
      return samplesBy("outcome", { landed, expired, dropped });
    },
    touchdown_transactions_lost_total: () => samplesBy("reason", counters.reasons),
    touchdown_transactions_landed_with_error_total: () => counters.landedFailed,
    touchdown_tips_accepted_lamports_total: () =>
      [...landing.tips].map(([plan, { accepted }]) => ({ labels: { plan }, value: accepted })),
    touchdown_tips_landed_lamports_total: () =>
      [...landing.tips].map(([plan, { landed }]) => ({ labels: { plan }, value: landed })),
    touchdown_duplicate_submissions_merged_total: () => counters.duplicatesMerged,
    touchdown_landing_slots: () => landing.slotDeltas,
    touchdown_marks_cleared_total: () =>
      samplesBy("reason", {
        slot_back: counters.marksClearedSlotBack,
        unconfirmed: counters.marksClearedUnconfirmed,
        refused: counters.markClearsRefused,
      }),
    touchdown_resends_total: () =>
      samplesBy("result", {
        sent: counters.resends,
        shed: counters.resendsShed,
        superseded: counters.resendsSuperseded,
      }),
    touchdown_status_requests_total: () =>
      samplesBy("result", {
        answered: counters.requestsSucceeded,
        failed: counters.requestsFailed,
        late: counters.requestsLate,
      }),
    touchdown_statuses_requested_total: () => counters.statusesRequested,
    touchdown_blockhash_checks_total: () =>
      samplesBy("result", {
        known: counters.blockhashesKnown,
        unknown: counters.blockhashesUnknown,
        failed: counters.blockhashChecksFailed,
      }),
    touchdown_node_reports_statuses: () => REPORTED[cluster.statusReporting()],
    touchdown_status_lag_seconds: () => landing.pollLagNs / NS_PER_S,
    touchdown_processed_total: () =>
      samplesBy("result", {
        seen: counters.processed,
        rolled_back: counters.rolledBack,
        omitted: counters.sightingsOmitted,
      }),
  } satisfies Partial<MetricSources>;
}

function leaderStatsSources({ leaderStats }: MetricDeps) {
  const top = () => leaderStats.view(LEADERS_NAMED_MAX);
  return {
    touchdown_leaders: () =>
      leaderStats.countByKind().map(({ clientKind, reachable, count }) => ({
        labels: { client: clientKind, reachable },
        value: count,
      })),
    touchdown_leader_round_trip_seconds: () =>
      top().map(({ identity, rttMs }) => ({ labels: { leader: identity }, value: seconds(rttMs) })),
    touchdown_leader_deliveries_total: () =>
      top().flatMap(({ identity, sent, acked, saturated }) =>
        Object.entries({ sent, acked, saturated }).map(([outcome, value]) => ({
          labels: { leader: identity, outcome },
          value,
        })),
      ),
    touchdown_leader_landed_share: () =>
      top().map(({ identity, landedShare }) => ({
        labels: { leader: identity },
        value: landedShare ?? Number.NaN,
      })),
  } satisfies Partial<MetricSources>;
}

/** Leaders with labels of their own. */
const LEADERS_NAMED_MAX = 10;

function receiptSources({ receipts, http }: MetricDeps) {
  return {
    touchdown_decode_seconds: () => receipts.durations.decode,
    touchdown_receipts: () => receipts.count(),
    touchdown_receipts_evicted_total: () => [
      { labels: { reason: "expired" }, value: receipts.counters.evictedExpired },
      { labels: { reason: "capacity" }, value: receipts.counters.evictedCapacity },
    ],
    touchdown_receipts_untracked_total: () => receipts.counters.untracked,
    touchdown_receipt_reads_total: () => {
      const { allowed, limited } = http.receipts.reads;
      return samplesBy("outcome", { admitted: allowed, limited });
    },
    touchdown_receipt_long_polls: () => http.receipts.longPolls.pending,
    touchdown_receipt_long_polls_total: () => {
      const { reached, timedOut, drained, left, rejected } = http.receipts.longPolls;
      return samplesBy("outcome", {
        reached,
        timed_out: timedOut,
        drained,
        aborted: left,
        rejected,
      });
    },
    touchdown_receipt_streams: () => http.receipts.streams.open,
    touchdown_receipt_streams_total: () => {
      const { opened, rejected, closedSlow, closedKey, gaps } = http.receipts.streams;
      return samplesBy("event", {
        opened,
        rejected,
        closed_slow: closedSlow,
        closed_key: closedKey,
        gap: gaps,
      });
    },
    touchdown_receipt_events_total: () => http.receipts.streams.events,
  } satisfies Partial<MetricSources>;
}

/** One sample per slot source that has reported: four at most. */
function bySource(router: Router, read: (status: SlotSourceStatus) => number) {
  return router.slotSources().map((status) => ({
    labels: { source: status.source },
    value: read(status),
  }));
}

/** NaN where unknown, as Prometheus expects. */
function seconds(ms: number | null): number {
  return ms === null ? Number.NaN : ms / 1000;
}
