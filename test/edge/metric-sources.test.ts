import { describe, expect, it } from "vitest";
import type { SharedLimitsCounters } from "../../src/accounts/global-limits/sync.ts";
import type { Chain } from "../../src/cluster/chain.ts";
import { createChainCounters } from "../../src/cluster/counters.ts";
import { COPY_REASONS, END_REASONS, REFUSALS } from "../../src/core/errors.ts";
import { FAULT, FAULT_COUNT } from "../../src/core/faults.ts";
import type { Dispatch } from "../../src/decode/workers/dispatch.ts";
import type { Seen } from "../../src/dedup/recent-transactions.ts";
import { type EdgeParts, metricSources } from "../../src/edge/metric-sources.ts";
import type { Pipeline } from "../../src/edge/pipeline.ts";
import type { DeskFigures } from "../../src/http/request-tracker.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { newLandCounters } from "../../src/landing/land-counters.ts";
import type { Landing } from "../../src/landing/landing.ts";
import type { Receipts } from "../../src/receipts/receipts.ts";
import { createRouteCounters } from "../../src/route/counters.ts";
import type { Router, RouterStatus } from "../../src/route/router.ts";
import { createHistogram, type Histogram } from "../../src/runtime/histogram.ts";
import { Scorecard } from "../../src/send/leader-stats.ts";
import type { PeerState } from "../../src/send/peer.ts";
import { newSendCounters } from "../../src/send/send-counters.ts";
import type { PeerView, Sender } from "../../src/send/sender.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { stub } from "../support/stub.ts";

/** A histogram that took `count` durations. */
function histogramOf(count: number): Histogram {
  const histogram = createHistogram();
  for (let each = 0; each < count; each += 1) histogram.record(1_000);
  return histogram;
}

/** Each key with a number of its own, from `first` on. */
function numbered<Name extends string>(names: readonly Name[], first: number) {
  // The names are the caller's.
  return Object.fromEntries(names.map((name, index) => [name, first + index])) as Record<
    Name,
    number
  >;
}

// The keys of a literal are its own names.
const REFUSAL_NAMES = Object.keys(REFUSALS) as (keyof typeof REFUSALS)[];
const COPY_NAMES = Object.keys(COPY_REASONS) as (keyof typeof COPY_REASONS)[];
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

const peer = (state: PeerState) => stub<PeerView>({ state, identity: "id", address: "10.0.0.1:1" });

const verifier = (keysFound: number, keysMade: number) =>
  stub<EdgeParts["inlineVerifier"]>({ keysFound, keysMade });
const SCORECARD = new Scorecard({ versionOf: () => "4.2.1" });
for (let index = 0; index < 12; index += 1) {
  const card = SCORECARD.card(`leader${index}`, `10.0.0.${index}:1`);
  Object.assign(card, { sent: 700 + index, acked: 650, rttUs: 30_000 });
}

/** Every counter that a metric reads holds a number that no other one holds. */
const RELAYED = { key: 1_301, limit: 1_302, leaders: 1_303, books: 1_304, other: 1_305 };
const PASS_EVENTS = { granted: 1_307, revoked: 1_308, evicted: 1_309, declined: 1_310 };
const LOST = { record_lost: 1_403, datagram_dropped: 1_404, datagram_refused: 1_405, panic: 7 };
const CUT = { too_many: 95, framing: 96, bodiless: 97, address: 98, slow: 99, unread: 972 };
const each = (name: string, label: string, values: Readonly<Record<string, number>>) =>
  Object.entries(values).map(([by, value]) => [name, { [label]: by }, value] as const);

const PARTS: EdgeParts = {
  build: { version: "1.2.3", engine: "portable", region: "local" },
  http: stub<HttpServer>({
    counters: stub<HttpServer["counters"]>({
      ...{ accepted: 101, requestsOpen: 105, aborted: 91 },
      ...{ answersDeferred: 92, answersUnread: 93, connectionsCrowded: 98, connectionsSlow: 99 },
      ...{ connections: 94, connectionsRefused: 95, cut: 96, bodilessCut: 97 },
    }),
    refusals: numbered(REFUSAL_NAMES, 400),
    unread: { bytes: 971, cut: 972 },
    receipts: {
      reads: { admitted: 171, limited: 172, evicted: 0 },
      waits: { held: 1, reached: 173, timedOut: 174, drained: 175, left: 176, refused: 177 },
      streams: {
        ...{ open: 2, opened: 181, events: 186, refused: 182 },
        ...{ cutSlow: 183, cutKey: 184, gaps: 185 },
      },
    },
  }),
  fronts: {
    ...{ counters: { decoded: 61, repeated: 1000, held: 62 }, waiting: 63 },
    ...{ relayed: RELAYED, passes: { passes: 1_306, ...PASS_EVENTS } },
    figures: [0, 1, 2].map(() => stub<DeskFigures>({})),
  },
  answers: histogramOf(3),
  seen: stub<Seen>({ counters: { hits: 103, entries: 0, evicted: 0, bytes: 0 } }),
  keys: {
    table: { counters: { keys: 104 } },
    loads: { ok: 0, failed: 0 },
    feed: stub<NonNullable<EdgeParts["keys"]["feed"]>>({
      counters: { revision: 0, snapshots: 105, failures: 106, changes: 1_201, connected: 1_202 },
      ageMs: () => 1_203_000,
    }),
    usage: stub<NonNullable<EdgeParts["keys"]["usage"]>>({
      counters: {
        ...{ batchesWritten: 1_204, failures: 1_205, merged: 1_206 },
        ...{ refused: 1_210, waiting: 1_207, untracked: 0 },
      },
    }),
    sharedLimits: stub<NonNullable<EdgeParts["keys"]["sharedLimits"]>>({
      counters: stub<SharedLimitsCounters>({ connected: 1_208, edges: 1_209 }),
    }),
  },
  pipeline: stub<Pipeline>({
    verdicts: { accepted: 107, faults: Array.from({ length: FAULT_COUNT }, (_, i) => 500 + i) },
  }),
  dispatch: stub<Dispatch>({
    counters: { inline: 111, handed: 112, full: 113, failed: 114, lost: 115, deaths: 116 },
    depth: 117,
    workersUp: 118,
    verifierCounters: verifier(1_000, 2_000),
  }),
  inlineVerifier: verifier(20, 30),
  router: stub<Router>({
    currentSlot: () => 301,
    counters: {
      ...createRouteCounters(),
      slotEvents: 137 + 138,
      slotEventsFarAhead: 138,
      slotEventsInvalid: 139,
    },
    status: () => STATUS,
    slotSources: () => [
      { source: "grpc", ageMs: 125, lagMs: 0, followed: true },
      { source: "slot", ageMs: 375, lagMs: 250, followed: false },
    ],
  }),
  chain: stub<Chain>({
    status: () => stub<ReturnType<Chain["status"]>>({ contacts: { ageMs: 60_500, failures: 0 } }),
    statusTelling: () => "no",
    blockHeight: () => 129,
    counters: {
      ...createChainCounters(),
      socketsClosed: 3,
      slotPollFailures: 4,
      scheduleFailures: 131,
      contactFailures: 132,
      contactsHastened: 136,
      voteFailures: 133,
      blockFailures: 134,
      statusFailures: 135,
      heightsBelieved: 126,
      heightsDoubted: 127,
      heightsRebased: 128,
      requestsHeldBack: 138,
      geyserClosed: 30,
      geyserGarbage: 106,
    },
  }),
  sender: stub<Sender>({
    counters: {
      ...newSendCounters(),
      packetsAdoptedLate: 1_311,
      copiesSent: 141,
      copiesAcked: 142,
      copiesFailed: 143,
      copiesDropped: 144,
      connectionsOverLimit: 1_400,
      identityChanges: 149,
      connectionsAttempted: 170,
      endedDropped: 171,
      silentBeforeTurn: 172,
      connectionsAdmitted: 150,
      connectionsNotAdmitted: 6,
      connectionsFailed: 4,
      reasons: numbered(COPY_NAMES, 600),
    },
    peers: () => [peer("live"), peer("waiting"), peer("live"), peer("idle"), peer("live")],
    losses: () => ({
      ...{ newsAged: 1_401, newsCrowded: 1_402, recordsLost: LOST.record_lost, panics: LOST.panic },
      ...{ datagramsDropped: LOST.datagram_dropped, datagramsRefused: LOST.datagram_refused },
    }),
    warmCount: 145,
    sendableCount: 146,
    outdatedCount: 147,
    leftOutCount: 148,
  }),
  landing: stub<Landing>({
    counters: {
      ...newLandCounters(),
      accepted: 180,
      landed: 181,
      expired: 182,
      dropped: 183,
      landedFailed: 184,
      joined: 185,
      resends: 186,
      resendsShed: 187,
      requestsAnswered: 188,
      requestsFailed: 189,
      requestsLate: 190,
      statusesAsked: 191,
      sighted: 192,
      vanished: 193,
      reasons: numbered(END_NAMES, 700),
    },
    inFlight: 194,
    pollLagNs: 195e9,
    slotDeltas: histogramOf(7),
  }),
  scorecard: SCORECARD,
  receipts: stub<Receipts>({
    durations: { decode: histogramOf(4), wire: histogramOf(5), ack: histogramOf(6) },
    count: () => 161,
    counters: {
      opened: 0,
      joined: 0,
      evictedAge: 162,
      evictedRoom: 163,
      untracked: 164,
    },
  }),
  readiness: () => ({ ok: true, checks: [] }),
};

async function pageOf(parts: Partial<EdgeParts> = {}) {
  const metrics = createMetrics(metricSources({ ...PARTS, ...parts }), { process: false });
  return parsePrometheus(await metrics.text());
}

type Labels = Readonly<Record<string, string>>;

describe("an edge's metrics", () => {
  it.each<readonly [string, Labels, number]>([
    ["build_info", PARTS.build, 1],
    ["ready", {}, 1],
    ["requests_total", { outcome: "accepted" }, 101],
    ["requests_in_flight", {}, 102],
    ["requests_left_total", {}, 91],
    ...each("answers_held_total", "reason", { turn: 92, unread: 93 }),
    ["answers_unread_bytes", {}, 971],
    ["client_connections", {}, 94],
    ...each("client_connections_cut_total", "reason", CUT),
    ["answer_seconds_count", {}, 3],
    ["seen_hits_total", {}, 1103],
    ["fronts", {}, 3],
    ...each("front_requests_relayed_total", "reason", RELAYED),
    ["front_leaders_left_out", {}, 148],
    ["front_passes", {}, 1_306],
    ...each("front_passes_total", "event", PASS_EVENTS),
    ["front_sends_held_total", {}, 62],
    ["front_records_late_total", {}, 1_311],
    ...each("front_news_unclaimed_total", "reason", { age: 1_401, room: 1_402 }),
    ["front_records_waiting", {}, 63],
    ["keys", {}, 104],
    ...each("keys_loads_total", "result", { ok: 105, failed: 106 }),
    ["verdicts_total", { verdict: "accepted" }, 107],
    ...each("decoded_total", "path", { inline: 111, worker: 112, front: 61 }),
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
    ...each("block_heights_total", "result", { believed: 126, doubted: 127, rebased: 128 }),
    ["node_requests_held_back_total", {}, 138],
    ["feed_failures_total", { feed: "slots" }, 7],
    ["feed_failures_total", { feed: "schedule" }, 131],
    ["feed_failures_total", { feed: "contacts" }, 132],
    ["feed_failures_total", { feed: "votes" }, 133],
    ["feed_failures_total", { feed: "blocks" }, 134],
    ["feed_failures_total", { feed: "statuses" }, 135],
    ["feed_failures_total", { feed: "grpc" }, 136],
    ...each("copies_total", "outcome", { sent: 141, acked: 142, failed: 143, dropped: 144 }),
    ["connections_warm", {}, 145],
    ["connections_sendable", {}, 146],
    ["connections_outdated", {}, 147],
    ["connections_over_limit_total", {}, 1_400],
    ["identity_changes_total", {}, 149],
    ...each("engine_losses_total", "event", LOST),
    ["handshakes_total", { result: "ok" }, 150],
    ["handshakes_total", { result: "failed" }, 10],
    ...each("peers", "state", { live: 3, waiting: 1, idle: 1, connecting: 0 }),
    ["decode_seconds_count", {}, 4],
    ["wire_seconds_count", {}, 5],
    ["ack_seconds_count", {}, 6],
    ["transactions_accepted_total", {}, 180],
    ...each("transactions_total", "end", { landed: 181, expired: 182, dropped: 183 }),
    ["transactions_failed_total", {}, 184],
    ["transactions_joined_total", {}, 185],
    ...each("resends_total", "result", { sent: 186, shed: 187 }),
    ...each("status_requests_total", "result", { answered: 188, failed: 189, late: 190 }),
    ["statuses_asked_total", {}, 191],
    ...each("sightings_total", "result", { seen: 192, vanished: 193 }),
    ["transactions_in_flight", {}, 194],
    ["status_lag_seconds", {}, 195],
    ["landing_slots_count", {}, 7],
    ["receipts", {}, 161],
    ["receipts_evicted_total", { reason: "age" }, 162],
    ["receipts_evicted_total", { reason: "room" }, 163],
    ["receipts_untracked_total", {}, 164],
    ["receipt_reads_total", { outcome: "admitted" }, 171],
    ["receipt_reads_total", { outcome: "limited" }, 172],
    ["receipt_waits", {}, 1],
    ["receipt_waits_total", { outcome: "reached" }, 173],
    ["receipt_waits_total", { outcome: "timed_out" }, 174],
    ["receipt_waits_total", { outcome: "drained" }, 175],
    ["receipt_waits_total", { outcome: "left" }, 176],
    ["receipt_waits_total", { outcome: "refused" }, 177],
    ["receipt_streams", {}, 2],
    ["receipt_streams_total", { event: "opened" }, 181],
    ["receipt_streams_total", { event: "refused" }, 182],
    ["receipt_streams_total", { event: "cut_slow" }, 183],
    ["receipt_streams_total", { event: "cut_key" }, 184],
    ["receipt_streams_total", { event: "gap" }, 185],
    ["receipt_events_total", {}, 186],
  ])("show in touchdown_%s %j what its stage counts: %d", async (name, labels, value) => {
    expect(seriesValue(await pageOf(), `touchdown_${name}`, labels)).toBe(value);
  });

  it("name ten leaders of a dozen: those that most was sent to", async () => {
    const page = await pageOf();
    const named = (metric: string): readonly string[] => {
      const samples = page.get(`touchdown_leader_${metric}`)?.samples ?? [];
      return [...new Set(samples.map(({ labels }) => labels["leader"] ?? ""))].sort();
    };
    const most = Array.from({ length: 10 }, (_, index) => `leader${index + 2}`).sort();
    for (const metric of ["round_trip_seconds", "copies_total", "landed_share"]) {
      expect(named(metric)).toEqual(most);
    }
  });

  it("name every refusal, every fault and every reason of a loss", async () => {
    const page = await pageOf();
    const values = (metric: string, label: string, names: readonly string[]): number[] =>
      names.map((name) => seriesValue(page, `touchdown_${metric}`, { [label]: name }));
    const counted = (first: number, count: number): number[] =>
      Array.from({ length: count }, (_, index) => first + index);
    expect(values("requests_total", "outcome", REFUSAL_NAMES)).toEqual(
      counted(400, REFUSAL_NAMES.length),
    );
    expect(values("verdicts_total", "verdict", Object.keys(FAULT))).toEqual(
      counted(500, FAULT_COUNT),
    );
    expect(values("copies_lost_total", "reason", COPY_NAMES)).toEqual(
      counted(600, COPY_NAMES.length),
    );
    expect(values("transactions_lost_total", "reason", END_NAMES)).toEqual(
      counted(700, END_NAMES.length),
    );
  });

  it("are nothing rather than wrong before the cluster was heard of", async () => {
    const unknown = { ...STATUS, slot: null, slotAgeMs: null, scheduleCovers: false };
    const page = await pageOf({
      router: stub<Router>({
        currentSlot: () => null,
        status: () => unknown,
        slotSources: () => [],
        counters: createRouteCounters(),
      }),
      chain: stub<Chain>({
        status: () => stub<ReturnType<Chain["status"]>>({ contacts: { ageMs: null, failures: 0 } }),
        counters: createChainCounters(),
        statusTelling: () => "unknown",
        blockHeight: () => null,
      }),
      readiness: () => ({ ok: false, checks: [] }),
    });
    const names = [
      "slot",
      "slot_age_seconds",
      "schedule_covers",
      "contacts_age_seconds",
      "ready",
      "statuses_told",
      "block_height",
    ];
    const values = names.map((name) => seriesValue(page, `touchdown_${name}`));
    expect(values).toEqual([0, Number.NaN, 0, Number.NaN, 0, Number.NaN, Number.NaN]);
  });
});
