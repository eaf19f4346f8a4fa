/**
 * Where each metric of the table is read from: the stages' own plain counters, at each scrape.
 * A row of the table that is missing here does not compile.
 */

import type { Chain } from "../cluster/chain.ts";
import { NS_PER_S } from "../core/clock.ts";
import { FAULT } from "../core/faults.ts";
import type { VerifierCounters } from "../decode/verify.ts";
import type { Dispatch } from "../decode/workers/dispatch.ts";
import type { Seen } from "../dedup/recent-transactions.ts";
import type { Landing } from "../landing/landing.ts";
import type { Fronts } from "../native-ingress/ingress-threads.ts";
import type { Relayed } from "../native-ingress/thread-counters.ts";
import type { Receipts } from "../receipts/receipts.ts";
import type { Router } from "../route/router.ts";
import type { SlotSourceStatus } from "../route/slots.ts";
import type { Histogram } from "../runtime/histogram.ts";
import type { Scorecard } from "../send/leader-stats.ts";
import type { Sender } from "../send/sender.ts";
import type { Readiness } from "../telemetry/admin.ts";
import { type MetricSources, samplesBy } from "../telemetry/metrics.ts";
import type { Clients } from "./ingress.ts";
import type { EdgeKeys } from "./keys.ts";
import type { Pipeline } from "./pipeline.ts";

type KeySource = Pick<EdgeKeys, "loads" | "feed" | "usage" | "sharedLimits"> & {
  readonly table: { readonly counters: { readonly keys: number } };
};

const NOTHING_RELAYED: Relayed = { key: 0, limit: 0, leaders: 0, books: 0, other: 0 };

type FrontsSource = Pick<Fronts, "counters" | "figures" | "relayed" | "passes" | "waiting">;

export interface EdgeParts {
  readonly build: { readonly version: string; readonly engine: string; readonly region: string };
  readonly http: Clients;
  /** null without any. */
  readonly fronts: FrontsSource | null;
  readonly answers: Histogram;
  readonly seen: Seen;
  readonly keys: KeySource;
  readonly pipeline: Pipeline;
  readonly dispatch: Dispatch;
  readonly inlineVerifier: VerifierCounters;
  readonly router: Router;
  readonly chain: Chain;
  readonly sender: Sender;
  readonly landing: Landing;
  readonly scorecard: Scorecard;
  readonly receipts: Receipts;
  readonly readiness: () => Readiness;
}

export function metricSources(parts: EdgeParts): MetricSources {
  return {
    ...ingressSources(parts),
    ...decodeSources(parts),
    ...leaderSources(parts),
    ...sendSources(parts),
    ...landSources(parts),
    ...scorecardSources(parts),
    ...receiptSources(parts),
  };
}

function ingressSources(parts: EdgeParts) {
  const { build, http, fronts, answers, seen, keys, sender, readiness } = parts;
  return {
    touchdown_build_info: () => [{ labels: build, value: 1 }],
    touchdown_ready: () => (readiness().ok ? 1 : 0),
    touchdown_requests_total: () => [
      { labels: { outcome: "accepted" }, value: http.counters.accepted },
      ...samplesBy("outcome", http.refusals),
    ],
    touchdown_requests_in_flight: () =>
      http.counters.requestsOpen - http.receipts.waits.held - http.receipts.streams.open,
    touchdown_answer_seconds: () => answers,
    ...clientSources(http),
    touchdown_seen_hits_total: () => seen.counters.hits + (fronts?.counters.repeated ?? 0),
    ...frontSources(fronts, sender),
    touchdown_keys: () => keys.table.counters.keys,
    ...keySources(keys),
  } satisfies Partial<MetricSources>;
}

function frontSources(fronts: FrontsSource | null, sender: Sender) {
  return {
    touchdown_fronts: () => fronts?.figures.length ?? 0,
    touchdown_front_requests_relayed_total: () =>
      samplesBy("reason", fronts?.relayed ?? NOTHING_RELAYED),
    touchdown_front_leaders_left_out: () => sender.leftOutCount,
    touchdown_front_passes: () => fronts?.passes.passes ?? 0,
    touchdown_front_passes_total: () => {
      const { granted = 0, revoked = 0, evicted = 0, declined = 0 } = fronts?.passes ?? {};
      return samplesBy("event", { granted, revoked, evicted, declined });
    },
    touchdown_front_records_waiting: () => fronts?.waiting ?? 0,
    touchdown_front_sends_held_total: () => fronts?.counters.held ?? 0,
    touchdown_front_records_late_total: () => sender.counters.packetsAdoptedLate,
    touchdown_front_news_unclaimed_total: () => {
      const { newsAged, newsCrowded } = sender.losses();
      return samplesBy("reason", { age: newsAged, room: newsCrowded });
    },
  } satisfies Partial<MetricSources>;
}

function clientSources({ counters, unread }: Pick<Clients, "counters" | "unread">) {
  return {
    touchdown_requests_left_total: () => counters.aborted,
    touchdown_answers_held_total: () =>
      samplesBy("reason", { turn: counters.answersDeferred, unread: counters.answersUnread }),
    touchdown_answers_unread_bytes: () => unread.bytes,
    touchdown_client_connections: () => counters.connections,
    touchdown_client_connections_cut_total: () =>
      samplesBy("reason", {
        too_many: counters.connectionsRefused,
        address: counters.connectionsCrowded,
        slow: counters.connectionsSlow,
        framing: counters.cut,
        bodiless: counters.bodilessCut,
        unread: unread.cut,
      }),
  } satisfies Partial<MetricSources>;
}

function keySources({ loads, feed, usage, sharedLimits }: KeySource) {
  return {
    touchdown_keys_loads_total: () =>
      samplesBy(
        "result",
        feed === null ? loads : { ok: feed.counters.snapshots, failed: feed.counters.failures },
      ),
    touchdown_keys_connected: () => feed?.counters.connected ?? 0,
    touchdown_keys_age_seconds: () => seconds(feed?.ageMs() ?? null),
    touchdown_keys_changes_total: () => feed?.counters.changes ?? 0,
    touchdown_usage_batches_total: () =>
      samplesBy("result", {
        written: usage?.counters.batchesWritten ?? 0,
        failed: usage?.counters.failures ?? 0,
        merged: usage?.counters.merged ?? 0,
        refused: usage?.counters.refused ?? 0,
      }),
    touchdown_usage_batches_waiting: () => usage?.counters.waiting ?? 0,
    touchdown_shared_limits_connected: () => sharedLimits?.counters.connected ?? 0,
    touchdown_shared_limits_edges: () => sharedLimits?.counters.edges ?? 0,
  } satisfies Partial<MetricSources>;
}

function decodeSources({ pipeline, dispatch, fronts, inlineVerifier }: EdgeParts) {
  return {
    touchdown_verdicts_total: () => [
      { labels: { verdict: "accepted" }, value: pipeline.verdicts.accepted },
      ...Object.entries(FAULT).map(([verdict, code]) => ({
        labels: { verdict },
        value: pipeline.verdicts.faults[code] ?? 0,
      })),
    ],
    touchdown_decoded_total: () => [
      { labels: { path: "inline" }, value: dispatch.counters.inline },
      { labels: { path: "worker" }, value: dispatch.counters.handed },
      { labels: { path: "front" }, value: fronts?.counters.decoded ?? 0 },
    ],
    touchdown_decode_ring_depth: () => dispatch.depth,
    touchdown_decode_ring_full_total: () => dispatch.counters.full,
    touchdown_decode_workers: () => dispatch.workersUp,
    touchdown_decode_worker_restarts_total: () => dispatch.counters.deaths,
    touchdown_verify_cache_lookups_total: () => {
      const workers = dispatch.verifierCounters;
      return [
        { labels: { result: "hit" }, value: inlineVerifier.keysFound + workers.keysFound },
        { labels: { result: "miss" }, value: inlineVerifier.keysMade + workers.keysMade },
      ];
    },
  } satisfies Partial<MetricSources>;
}

function leaderSources({ router, chain }: EdgeParts) {
  return {
    touchdown_slot: () => router.currentSlot() ?? 0,
    touchdown_slot_age_seconds: () => seconds(router.status().slotAgeMs),
    touchdown_slot_events_total: () => {
      const { slotEvents, slotEventsFarAhead, slotEventsInvalid } = router.counters;
      return samplesBy("result", {
        taken: slotEvents - slotEventsFarAhead,
        far_ahead: slotEventsFarAhead,
        invalid: slotEventsInvalid,
        lost: chain.counters.slotEventsLost,
      });
    },
    touchdown_slot_seconds: () => seconds(router.status().slotTimeMs),
    touchdown_slot_source_age_seconds: () => bySource(router, ({ ageMs }) => seconds(ageMs)),
    touchdown_slot_source_lag_seconds: () => bySource(router, ({ lagMs }) => seconds(lagMs)),
    touchdown_slot_source_followed: () => bySource(router, ({ followed }) => (followed ? 1 : 0)),
    touchdown_schedule_covers: () => (router.status().scheduleCovers ? 1 : 0),
    touchdown_contacts: () => router.status().contacts,
    touchdown_contacts_age_seconds: () => seconds(chain.status().contacts.ageMs),
    touchdown_node_requests_held_back_total: () => chain.counters.requestsHeldBack,
    touchdown_contacts_hastened_total: () => chain.counters.contactsHastened,
    touchdown_block_height: () => chain.blockHeight() ?? Number.NaN,
    touchdown_block_heights_total: () => {
      const { heightsBelieved, heightsDoubted, heightsRebased } = chain.counters;
      return samplesBy("result", {
        believed: heightsBelieved,
        doubted: heightsDoubted,
        rebased: heightsRebased,
      });
    },
    touchdown_feed_failures_total: () => {
      const { counters } = chain;
      return samplesBy("feed", {
        slots: counters.socketsClosed + counters.slotPollFailures,
        schedule: counters.scheduleFailures,
        contacts: counters.contactFailures,
        votes: counters.voteFailures,
        blocks: counters.blockFailures,
        statuses: counters.statusFailures,
        grpc: counters.geyserClosed + counters.geyserGarbage,
      });
    },
  } satisfies Partial<MetricSources>;
}

function sendSources({ sender, receipts }: EdgeParts) {
  return {
    touchdown_copies_total: () => {
      const { copiesSent, copiesAcked, copiesFailed, copiesDropped } = sender.counters;
      return samplesBy("outcome", {
        sent: copiesSent,
        acked: copiesAcked,
        failed: copiesFailed,
        dropped: copiesDropped,
      });
    },
    touchdown_copies_lost_total: () => samplesBy("reason", sender.counters.reasons),
    touchdown_peers: () => {
      const states = { idle: 0, connecting: 0, waiting: 0, live: 0 };
      for (const { state } of sender.peers()) states[state] += 1;
      return samplesBy("state", states);
    },
    touchdown_connections_warm: () => sender.warmCount,
    touchdown_connections_sendable: () => sender.sendableCount,
    touchdown_connections_outdated: () => sender.outdatedCount,
    touchdown_connections_over_limit_total: () => sender.counters.connectionsOverLimit,
    touchdown_identity_changes_total: () => sender.counters.identityChanges,
    touchdown_handshakes_total: () => {
      const { connectionsAdmitted, connectionsNotAdmitted, connectionsFailed } = sender.counters;
      return samplesBy("result", {
        ok: connectionsAdmitted,
        failed: connectionsNotAdmitted + connectionsFailed,
      });
    },
    touchdown_connections_ended_total: () => {
      const { counters } = sender;
      return samplesBy("end", {
        evicted: counters.endedDropped,
        disallowed: counters.endedDisallowed,
        too_many: counters.endedTooMany,
        invalid_stream: counters.endedInvalidStream,
        other_code: counters.endedOtherCode,
        transport: counters.endedTransport,
        silence: counters.endedSilent,
        silent_before_turn: counters.silentBeforeTurn,
        local: counters.endedLocal,
      });
    },
    touchdown_engine_losses_total: () => {
      const { recordsLost, datagramsDropped, datagramsRefused, panics } = sender.losses();
      return samplesBy("event", {
        record_lost: recordsLost,
        datagram_dropped: datagramsDropped,
        datagram_refused: datagramsRefused,
        panic: panics,
      });
    },
    touchdown_wire_seconds: () => receipts.durations.wire,
    touchdown_ack_seconds: () => receipts.durations.ack,
  } satisfies Partial<MetricSources>;
}

const TOLD = { yes: 1, no: 0, unknown: Number.NaN } as const;

function landSources({ landing, chain }: EdgeParts) {
  const { counters } = landing;
  return {
    touchdown_transactions_accepted_total: () => counters.accepted,
    touchdown_transactions_in_flight: () => landing.inFlight,
    touchdown_transactions_total: () => {
      const { landed, expired, dropped } = counters;
      return samplesBy("end", { landed, expired, dropped });
    },
    touchdown_transactions_lost_total: () => samplesBy("reason", counters.reasons),
    touchdown_transactions_failed_total: () => counters.landedFailed,
    touchdown_transactions_joined_total: () => counters.joined,
    touchdown_landing_slots: () => landing.slotDeltas,
    touchdown_resends_total: () =>
      samplesBy("result", { sent: counters.resends, shed: counters.resendsShed }),
    touchdown_status_requests_total: () =>
      samplesBy("result", {
        answered: counters.requestsAnswered,
        failed: counters.requestsFailed,
        late: counters.requestsLate,
      }),
    touchdown_statuses_asked_total: () => counters.statusesAsked,
    touchdown_statuses_told: () => TOLD[chain.statusTelling()],
    touchdown_status_lag_seconds: () => landing.pollLagNs / NS_PER_S,
    touchdown_sightings_total: () =>
      samplesBy("result", { seen: counters.sighted, vanished: counters.vanished }),
  } satisfies Partial<MetricSources>;
}

function scorecardSources({ scorecard }: EdgeParts) {
  const top = () => scorecard.view(LEADERS_NAMED_MAX);
  return {
    touchdown_leaders: () =>
      scorecard.census().map(({ dialect, reachable, count }) => ({
        labels: { dialect, reachable },
        value: count,
      })),
    touchdown_leader_round_trip_seconds: () =>
      top().map(({ identity, rttMs }) => ({ labels: { leader: identity }, value: seconds(rttMs) })),
    touchdown_leader_copies_total: () =>
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

/** Leaders that have labels of their own. */
const LEADERS_NAMED_MAX = 10;

function receiptSources({ receipts, http }: EdgeParts) {
  return {
    touchdown_decode_seconds: () => receipts.durations.decode,
    touchdown_receipts: () => receipts.count(),
    touchdown_receipts_evicted_total: () => [
      { labels: { reason: "age" }, value: receipts.counters.evictedAge },
      { labels: { reason: "room" }, value: receipts.counters.evictedRoom },
    ],
    touchdown_receipts_untracked_total: () => receipts.counters.untracked,
    touchdown_receipt_reads_total: () => {
      const { admitted, limited } = http.receipts.reads;
      return samplesBy("outcome", { admitted, limited });
    },
    touchdown_receipt_waits: () => http.receipts.waits.held,
    touchdown_receipt_waits_total: () => {
      const { reached, timedOut, drained, left, refused } = http.receipts.waits;
      return samplesBy("outcome", { reached, timed_out: timedOut, drained, left, refused });
    },
    touchdown_receipt_streams: () => http.receipts.streams.open,
    touchdown_receipt_streams_total: () => {
      const { opened, refused, cutSlow, cutKey, gaps } = http.receipts.streams;
      return samplesBy("event", { opened, refused, cut_slow: cutSlow, cut_key: cutKey, gap: gaps });
    },
    touchdown_receipt_events_total: () => http.receipts.streams.events,
  } satisfies Partial<MetricSources>;
}

/** One sample for each source of slots that has said something: four at most. */
function bySource(router: Router, read: (status: SlotSourceStatus) => number) {
  return router.slotSources().map((status) => ({
    labels: { source: status.source },
    value: read(status),
  }));
}

/** NaN where nothing is known, as Prometheus has it. */
function seconds(ms: number | null): number {
  return ms === null ? Number.NaN : ms / 1000;
}
