/**
 * Every metric of an edge, one row each; `/metrics` and the README's table are made from it.
 *
 * Names are part of the interface: added to, never changed. Each label has few values, all from
 * the code or from the operator's configuration: never an account, an address or a signature. Only
 * leaders are named, those ten that most was sent to.
 * Metrics of the process itself (`process_…`, `nodejs_…`) are prom-client's and not listed here.
 */

export interface MetricRow {
  readonly name: `touchdown_${string}`;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

export const METRICS = [
  // The edge as a whole
  {
    name: "touchdown_build_info",
    kind: "gauge",
    labels: ["version", "engine", "region"],
    help: "Always 1; the labels say what runs.",
  },
  {
    name: "touchdown_ready",
    kind: "gauge",
    labels: [],
    help: "1 while /readyz answers 200, else 0.",
  },
  // Ingress
  {
    name: "touchdown_requests_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Submissions answered, by accepted or the refusal's reason; a batch counts each call.",
  },
  {
    name: "touchdown_requests_in_flight",
    kind: "gauge",
    labels: [],
    help: "Submissions received and not answered yet.",
  },
  {
    name: "touchdown_answer_seconds",
    kind: "histogram",
    labels: [],
    help: "From a request's last byte to its answer, accepted transactions only.",
  },
  {
    name: "touchdown_seen_hits_total",
    kind: "counter",
    labels: [],
    help: "Submissions of a transaction already in flight, answered without sending again.",
  },
  {
    name: "touchdown_keys",
    kind: "gauge",
    labels: [],
    help: "API keys that are known now.",
  },
  {
    name: "touchdown_keys_loads_total",
    kind: "counter",
    labels: ["result"],
    help: "Loads of the keys, by ok or failed; after a failed one the old keys stay.",
  },
  {
    name: "touchdown_keys_connected",
    kind: "gauge",
    labels: [],
    help: "1 while changes of keys are heard from the accounts database, else 0.",
  },
  {
    name: "touchdown_keys_age_seconds",
    kind: "gauge",
    labels: [],
    help: "Since the keys were last known to be as the database has them; NaN until then.",
  },
  {
    name: "touchdown_keys_changes_total",
    kind: "counter",
    labels: [],
    help: "Changes of keys and plans taken over from the accounts database.",
  },
  {
    name: "touchdown_usage_batches_total",
    kind: "counter",
    labels: ["result"],
    help: "Batches of usage, by written, failed (tried again) or merged for want of room.",
  },
  {
    name: "touchdown_usage_batches_waiting",
    kind: "gauge",
    labels: [],
    help: "Batches of usage that wait for the accounts database.",
  },
  {
    name: "touchdown_shared_limits_connected",
    kind: "gauge",
    labels: [],
    help: "1 while limits are shared with other edges, else 0.",
  },
  {
    name: "touchdown_shared_limits_edges",
    kind: "gauge",
    labels: [],
    help: "Edges that share limits, as last told.",
  },
  // Decode
  {
    name: "touchdown_verdicts_total",
    kind: "counter",
    labels: ["verdict"],
    help: "Transactions decoded, by accepted or the fault that was found.",
  },
  {
    name: "touchdown_decoded_total",
    kind: "counter",
    labels: ["path"],
    help: "Transactions decoded, by where: inline on the HTTP thread or on a worker.",
  },
  {
    name: "touchdown_decode_seconds",
    kind: "histogram",
    labels: [],
    help: "From a request's last byte to the verdict, accepted transactions only.",
  },
  {
    name: "touchdown_decode_ring_depth",
    kind: "gauge",
    labels: [],
    help: "Transactions that wait for a worker or are with one.",
  },
  {
    name: "touchdown_decode_ring_full_total",
    kind: "counter",
    labels: [],
    help: "Transactions refused as overloaded because the ring to the workers was full.",
  },
  {
    name: "touchdown_decode_workers",
    kind: "gauge",
    labels: [],
    help: "Worker threads alive.",
  },
  {
    name: "touchdown_decode_worker_restarts_total",
    kind: "counter",
    labels: [],
    help: "Worker threads replaced after one died.",
  },
  {
    name: "touchdown_verify_cache_lookups_total",
    kind: "counter",
    labels: ["result"],
    help: "Lookups of a signer's prepared public key, by hit or miss.",
  },
  // Chain and route
  {
    name: "touchdown_slot",
    kind: "gauge",
    labels: [],
    help: "The estimated current slot; 0 until one is known.",
  },
  {
    name: "touchdown_slot_age_seconds",
    kind: "gauge",
    labels: [],
    help: "Since the cluster last told of a new slot; NaN until it did.",
  },
  {
    name: "touchdown_slot_seconds",
    kind: "gauge",
    labels: [],
    help: "The measured duration of a slot.",
  },
  {
    name: "touchdown_slot_source_age_seconds",
    kind: "gauge",
    labels: ["source"],
    help: "Since each source of slots last said something.",
  },
  {
    name: "touchdown_slot_source_lag_seconds",
    kind: "gauge",
    labels: ["source"],
    help: "How much later than the first source each one tells of a slot, smoothed.",
  },
  {
    name: "touchdown_slot_source_followed",
    kind: "gauge",
    labels: ["source"],
    help: "1 for the source of slots that the estimate follows now, else 0.",
  },
  {
    name: "touchdown_schedule_covers",
    kind: "gauge",
    labels: [],
    help: "1 while the leader of the current slot is known, else 0.",
  },
  {
    name: "touchdown_contacts",
    kind: "gauge",
    labels: [],
    help: "Leaders whose QUIC address is known.",
  },
  {
    name: "touchdown_contacts_age_seconds",
    kind: "gauge",
    labels: [],
    help: "Since the contacts were last loaded; NaN until they were.",
  },
  {
    name: "touchdown_feed_failures_total",
    kind: "counter",
    labels: ["feed"],
    help: "Times a feed from the cluster failed or was lost; it is tried again.",
  },
  // Send
  {
    name: "touchdown_copies_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Copies for leaders, by sent and then by its end: acked, failed or dropped.",
  },
  {
    name: "touchdown_copies_lost_total",
    kind: "counter",
    labels: ["reason"],
    help: "Copies that failed or were dropped, by the reason.",
  },
  {
    name: "touchdown_peers",
    kind: "gauge",
    labels: ["state"],
    help: "Leaders with a connection or an attempt at one, by its state.",
  },
  {
    name: "touchdown_connections_warm",
    kind: "gauge",
    labels: [],
    help: "Live connections to leaders.",
  },
  {
    name: "touchdown_connections_sendable",
    kind: "gauge",
    labels: [],
    help: "Live connections to the leaders that a transaction would go to now.",
  },
  {
    name: "touchdown_connections_outdated",
    kind: "gauge",
    labels: [],
    help: "Live connections that still show the identity of before and are being replaced.",
  },
  {
    name: "touchdown_identity_changes_total",
    kind: "counter",
    labels: [],
    help: "Changes of the identity that leaders see, since the start.",
  },
  {
    name: "touchdown_handshakes_total",
    kind: "counter",
    labels: ["result"],
    help: "Connection attempts ended, by ok or failed.",
  },
  {
    name: "touchdown_connections_ended_total",
    kind: "counter",
    labels: ["end"],
    help: "Connections that ended, by the leader's close code or what else ended them.",
  },
  {
    name: "touchdown_leaders",
    kind: "gauge",
    labels: ["dialect", "reachable"],
    help: "Leaders on the scorecard, by what they run and whether they can be reached.",
  },
  {
    name: "touchdown_leader_round_trip_seconds",
    kind: "gauge",
    labels: ["leader"],
    help: "Round trip to the leaders that most was sent to.",
  },
  {
    name: "touchdown_leader_copies_total",
    kind: "counter",
    labels: ["leader", "outcome"],
    help: "Copies of the leaders that most was sent to, by sent, acked or saturated.",
  },
  {
    name: "touchdown_leader_landed_share",
    kind: "gauge",
    labels: ["leader"],
    help: "Share of what was aimed at a leader that landed in its blocks, as the above.",
  },
  {
    name: "touchdown_wire_seconds",
    kind: "histogram",
    labels: [],
    help: "From a request's last byte until the first copy was written to a leader's connection.",
  },
  {
    name: "touchdown_ack_seconds",
    kind: "histogram",
    labels: [],
    help: "From a copy's being written until the leader acknowledged all of it.",
  },
  // Land
  {
    name: "touchdown_transactions_accepted_total",
    kind: "counter",
    labels: [],
    help: "Transactions taken on; each is in flight or has one end.",
  },
  {
    name: "touchdown_transactions_in_flight",
    kind: "gauge",
    labels: [],
    help: "Transactions whose end is awaited.",
  },
  {
    name: "touchdown_transactions_total",
    kind: "counter",
    labels: ["end"],
    help: "Transactions that ended, by landed, expired or dropped.",
  },
  {
    name: "touchdown_transactions_lost_total",
    kind: "counter",
    labels: ["reason"],
    help: "Transactions that ended without landing, by the reason.",
  },
  {
    name: "touchdown_transactions_failed_total",
    kind: "counter",
    labels: [],
    help: "Landed transactions whose block tells of an error.",
  },
  {
    name: "touchdown_transactions_joined_total",
    kind: "counter",
    labels: [],
    help: "Submissions that joined a transaction in flight.",
  },
  {
    name: "touchdown_landing_slots",
    kind: "histogram",
    labels: [],
    help: "Slots from the one in progress at receipt to the one of landing; le is in slots.",
  },
  {
    name: "touchdown_resends_total",
    kind: "counter",
    labels: ["result"],
    help: "Resends of transactions, by sent or shed: left out for those that pay more.",
  },
  {
    name: "touchdown_status_requests_total",
    kind: "counter",
    labels: ["result"],
    help: "Requests for statuses to the cluster, by answered, failed or late.",
  },
  {
    name: "touchdown_statuses_asked_total",
    kind: "counter",
    labels: [],
    help: "Transactions asked for in those requests, each time counted.",
  },
  {
    name: "touchdown_status_lag_seconds",
    kind: "gauge",
    labels: [],
    help: "By how much the most overdue question after a status is late.",
  },
  {
    name: "touchdown_sightings_total",
    kind: "counter",
    labels: ["result"],
    help: "Transactions seen in an unconfirmed block, by seen, and vanished when it was left.",
  },
  // Observe
  {
    name: "touchdown_receipts",
    kind: "gauge",
    labels: [],
    help: "Receipts kept.",
  },
  {
    name: "touchdown_receipts_evicted_total",
    kind: "counter",
    labels: ["reason"],
    help: "Receipts let go, by age (kept as long as promised) or room (too many).",
  },
  {
    name: "touchdown_receipts_untracked_total",
    kind: "counter",
    labels: [],
    help: "Outcomes that belong to no receipt that is kept.",
  },
  {
    name: "touchdown_receipt_reads_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Requests for receipts with a valid key, by admitted or limited.",
  },
  {
    name: "touchdown_receipt_waits",
    kind: "gauge",
    labels: [],
    help: "Answers held until a transaction has ended.",
  },
  {
    name: "touchdown_receipt_waits_total",
    kind: "counter",
    labels: ["outcome"],
    help: "Held answers, by what ended the wait: reached, timed_out, drained, left or refused.",
  },
  {
    name: "touchdown_receipt_streams",
    kind: "gauge",
    labels: [],
    help: "Streams of receipts open.",
  },
  {
    name: "touchdown_receipt_streams_total",
    kind: "counter",
    labels: ["event"],
    help: "Of streams of receipts: opened, refused, cut_slow, cut_key, and gap for changes missed.",
  },
  {
    name: "touchdown_receipt_events_total",
    kind: "counter",
    labels: [],
    help: "Events written to streams of receipts.",
  },
] as const satisfies readonly MetricRow[];

export type MetricName = (typeof METRICS)[number]["name"];
