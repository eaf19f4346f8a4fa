/**
 * Every metric of an edge, one row each; `/metrics` and docs/metrics.md are made from it.
 *
 * Names are part of the interface: added to, never changed. Each label has few values, all from
 * the code or from the operator's configuration: never an account, an address or a signature. Only
 * leaders are named, those ten that most was sent to.
 * Metrics of the process itself (`process_…`, `nodejs_…`) are the Prometheus
 * client's and not listed here.
 */

import { FRONT_METRICS } from "./ingress-thread-metric-table.ts";
import { counter, gauge, histogram, type MetricRow } from "./metric-rows.ts";

export const METRICS = [
  // The edge as a whole
  gauge(
    "touchdown_build_info",
    ["version", "engine", "region"],
    "Always 1; the labels say what runs.",
  ),
  gauge("touchdown_ready", [], "1 while /readyz answers 200, else 0."),
  // Ingress
  counter(
    "touchdown_requests_total",
    ["outcome"],
    "Submissions, a batch by its calls, by accepted or the refusal's reason; and refused pages.",
  ),
  gauge("touchdown_requests_in_flight", [], "Submissions received and not answered yet."),
  counter(
    "touchdown_requests_left_total",
    [],
    "Requests whose connection ended first: its client left, ended a stream or sent on too soon.",
  ),
  counter(
    "touchdown_answers_held_total",
    ["reason"],
    "Answers that waited for the thread's next turn (turn) or for the client to read (unread).",
  ),
  gauge("touchdown_answers_unread_bytes", [], "Bytes of answers that wait for clients to read."),
  gauge("touchdown_client_connections", [], "Connections of clients that are open now."),
  counter(
    "touchdown_client_connections_cut_total",
    ["reason"],
    "Connections of clients ended for too_many, framing (a size that is not read, too), " +
      "bodiless (a flood of HEAD or OPTIONS) or unread (too much waited to be read), and by " +
      "fronts for address (it held its share) or slow (a head or a body was not whole in " +
      "its time).",
  ),
  histogram(
    "touchdown_answer_seconds",
    [],
    "From a request's last byte to its answer, of transactions that were judged, accepted or not.",
  ),
  counter(
    "touchdown_seen_hits_total",
    [],
    "Submissions of a transaction sent a moment ago, answered without sending again.",
  ),
  ...FRONT_METRICS,
  gauge("touchdown_keys", [], "API keys that are known now."),
  counter(
    "touchdown_keys_loads_total",
    ["result"],
    "Loads of the keys, by ok or failed; after a failed one the old keys stay.",
  ),
  gauge(
    "touchdown_keys_connected",
    [],
    "1 while changes of keys are heard from the accounts database, else 0.",
  ),
  gauge(
    "touchdown_keys_age_seconds",
    [],
    "Since the keys were last known to be as the database has them; NaN until then.",
  ),
  counter(
    "touchdown_keys_changes_total",
    [],
    "Changes of keys and plans taken over from the accounts database.",
  ),
  counter(
    "touchdown_usage_batches_total",
    ["result"],
    "Batches of usage: written, failed (tried again), merged for want of room, refused (lost).",
  ),
  gauge(
    "touchdown_usage_batches_waiting",
    [],
    "Batches of usage that wait for the accounts database.",
  ),
  gauge(
    "touchdown_shared_limits_connected",
    [],
    "1 while limits are shared with other edges, else 0.",
  ),
  gauge("touchdown_shared_limits_edges", [], "Edges that share limits, as last told."),
  // Decode
  counter(
    "touchdown_verdicts_total",
    ["verdict"],
    "Transactions decoded, by accepted or the fault that was found.",
  ),
  counter(
    "touchdown_decoded_total",
    ["path"],
    "Transactions decoded, by where: inline on the HTTP thread, on a worker, or on a front.",
  ),
  histogram(
    "touchdown_decode_seconds",
    [],
    "From a request's last byte to the verdict, accepted transactions only.",
  ),
  gauge("touchdown_decode_ring_depth", [], "Transactions that wait for a worker or are with one."),
  counter(
    "touchdown_decode_ring_full_total",
    [],
    "Transactions refused as overloaded because the ring to the workers was full.",
  ),
  gauge("touchdown_decode_workers", [], "Worker threads alive."),
  counter("touchdown_decode_worker_restarts_total", [], "Worker threads replaced after one died."),
  counter(
    "touchdown_verify_cache_lookups_total",
    ["result"],
    "Lookups of a signer's prepared public key, by hit or miss.",
  ),
  // Chain and route
  gauge("touchdown_slot", [], "The estimated current slot; 0 until one is known."),
  gauge(
    "touchdown_slot_age_seconds",
    [],
    "Since the cluster last told of a new slot; NaN until it did.",
  ),
  counter(
    "touchdown_slot_events_total",
    ["result"],
    "What sources said of slots, by taken, far_ahead (not believed yet), invalid and lost.",
  ),
  gauge("touchdown_slot_seconds", [], "The measured duration of a slot."),
  gauge(
    "touchdown_slot_source_age_seconds",
    ["source"],
    "Since each source of slots last said something.",
  ),
  gauge(
    "touchdown_slot_source_lag_seconds",
    ["source"],
    "How much later than the first source each one tells of a slot, smoothed.",
  ),
  gauge(
    "touchdown_slot_source_followed",
    ["source"],
    "1 for the source of slots that the estimate follows now, else 0.",
  ),
  gauge(
    "touchdown_schedule_covers",
    [],
    "1 while the leader of the current slot is known, else 0.",
  ),
  gauge("touchdown_contacts", [], "Leaders whose QUIC address is known."),
  gauge(
    "touchdown_contacts_age_seconds",
    [],
    "Since the contacts were last loaded; NaN until they were.",
  ),
  counter(
    "touchdown_node_requests_held_back_total",
    [],
    "Questions that were not asked because the node wants to be left alone (`Retry-After`).",
  ),
  counter(
    "touchdown_contacts_hastened_total",
    [],
    "Times that the contacts were wanted sooner, because a leader that worked was missed.",
  ),
  gauge(
    "touchdown_block_height",
    [],
    "Height of the highest confirmed block that is believed; NaN before it is known.",
  ),
  counter(
    "touchdown_block_heights_total",
    ["result"],
    "Heights told: believed, doubted for not fitting, rebased when such were believed after all.",
  ),
  counter(
    "touchdown_feed_failures_total",
    ["feed"],
    "Times a feed from the cluster failed or was lost; it is tried again.",
  ),
  // Send
  counter(
    "touchdown_copies_total",
    ["outcome"],
    "Copies for leaders, by sent and then by its end: acked, failed or dropped.",
  ),
  counter(
    "touchdown_copies_lost_total",
    ["reason"],
    "Copies that failed or were dropped, by the reason.",
  ),
  gauge(
    "touchdown_peers",
    ["state"],
    "Leaders with a connection or an attempt at one, by its state.",
  ),
  gauge("touchdown_connections_warm", [], "Live connections to leaders."),
  gauge(
    "touchdown_connections_sendable",
    [],
    "Live connections to the leaders that a transaction would go to now.",
  ),
  gauge(
    "touchdown_connections_outdated",
    [],
    "Live connections that still show the identity of before and are being replaced.",
  ),
  counter(
    "touchdown_connections_over_limit_total",
    [],
    "Times that a plan's leader was given no connection, because send.connections are taken.",
  ),
  counter("touchdown_identity_changes_total", [], "Changes of the identity that leaders see."),
  counter("touchdown_handshakes_total", ["result"], "Connection attempts ended, by ok or failed."),
  counter(
    "touchdown_connections_ended_total",
    ["end"],
    "Connections that ended, by the leader's close code or what else ended them.",
  ),
  counter(
    "touchdown_engine_losses_total",
    ["event"],
    "In the engine: record_lost, which leaves a copy without its end, and datagram_dropped, both " +
      "for want of room; datagram_refused by the system, as too large a probe is; and panic.",
  ),
  gauge(
    "touchdown_leaders",
    ["dialect", "reachable"],
    "Leaders on the scorecard, by what they run and whether they can be reached.",
  ),
  gauge(
    "touchdown_leader_round_trip_seconds",
    ["leader"],
    "Round trip to the leaders that most was sent to.",
  ),
  counter(
    "touchdown_leader_copies_total",
    ["leader", "outcome"],
    "Copies of the leaders that most was sent to, by sent, acked or saturated.",
  ),
  gauge(
    "touchdown_leader_landed_share",
    ["leader"],
    "Share of what was aimed at a leader that landed in its blocks, as the above.",
  ),
  histogram(
    "touchdown_wire_seconds",
    [],
    "From a request's last byte until the first copy was written to a leader's connection.",
  ),
  histogram(
    "touchdown_ack_seconds",
    [],
    "From a copy's being written until the leader acknowledged all of it.",
  ),
  // Land
  counter(
    "touchdown_transactions_accepted_total",
    [],
    "Transactions taken on; each is in flight or has one end.",
  ),
  gauge("touchdown_transactions_in_flight", [], "Transactions whose end is awaited."),
  counter(
    "touchdown_transactions_total",
    ["end"],
    "Transactions that ended, by landed, expired or dropped.",
  ),
  counter(
    "touchdown_transactions_lost_total",
    ["reason"],
    "Transactions that ended without landing, by the reason.",
  ),
  counter("touchdown_transactions_failed_total", [], "Transactions that landed with an error."),
  counter(
    "touchdown_transactions_joined_total",
    [],
    "Submissions that joined a transaction in flight.",
  ),
  histogram(
    "touchdown_landing_slots",
    [],
    "Slots from the one in progress at receipt to the one of landing; le is in slots.",
  ),
  counter(
    "touchdown_resends_total",
    ["result"],
    "Resends of transactions, by sent or shed: left out for those that pay more.",
  ),
  counter(
    "touchdown_status_requests_total",
    ["result"],
    "Requests for statuses to the cluster, by answered, failed or late.",
  ),
  counter(
    "touchdown_statuses_asked_total",
    [],
    "Transactions asked for in those requests, each time counted.",
  ),
  gauge(
    "touchdown_statuses_told",
    [],
    "1 while the node proves to tell statuses, 0 while it tells none, NaN before either is known.",
  ),
  gauge(
    "touchdown_status_lag_seconds",
    [],
    "By how much the most overdue question after a status is late.",
  ),
  counter(
    "touchdown_sightings_total",
    ["result"],
    "Transactions seen in an unconfirmed block, by seen, and vanished when it was left.",
  ),
  // Observe
  gauge("touchdown_receipts", [], "Receipts kept."),
  counter(
    "touchdown_receipts_evicted_total",
    ["reason"],
    "Receipts let go, by age (kept as long as promised) or room (too many).",
  ),
  counter(
    "touchdown_receipts_untracked_total",
    [],
    "Outcomes that belong to no receipt that is kept.",
  ),
  counter(
    "touchdown_receipt_reads_total",
    ["outcome"],
    "Requests for receipts with a valid key, by admitted or limited.",
  ),
  gauge("touchdown_receipt_waits", [], "Answers held until a transaction has ended."),
  counter(
    "touchdown_receipt_waits_total",
    ["outcome"],
    "Held answers, by what ended the wait: reached, timed_out, drained, left or refused.",
  ),
  gauge("touchdown_receipt_streams", [], "Streams of receipts open."),
  counter(
    "touchdown_receipt_streams_total",
    ["event"],
    "Of streams of receipts: opened, refused, cut_slow, cut_key, and gap for changes missed.",
  ),
  counter("touchdown_receipt_events_total", [], "Events written to streams of receipts."),
] as const satisfies readonly MetricRow[];
