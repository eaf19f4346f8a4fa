/**
 * Every metric of an edge, one row each; the source of `/metrics` and docs/metrics.md.
 *
 * Names are part of the interface: added, never changed. Each label has few values, all from the
 * code or the operator's configuration: never an account, an address or a signature. Only leaders
 * are named, the ten with the most deliveries. Metrics of the process (`process_…`, `nodejs_…`)
 * come from the Prometheus client and are not listed here.
 */

import { INGRESS_THREAD_METRICS } from "./ingress-thread-metric-table.ts";
import { counter, gauge, histogram, type MetricRow } from "./metric-rows.ts";

export const METRICS = [
  // Edge
  gauge(
    "touchdown_build_info",
    ["version", "engine", "region"],
    "Always 1; the labels say what runs.",
  ),
  gauge("touchdown_ready", [], "1 while /readyz answers 200, else 0."),
  gauge(
    "touchdown_identity_info",
    ["identity"],
    "Always 1; the label is the public key of the identity that leaders see.",
  ),
  gauge(
    "touchdown_identity_stake_lamports",
    [],
    "The activated stake of that identity, by the cluster's vote accounts; NaN before they are " +
      "read.",
  ),
  counter(
    "touchdown_thread_cpu_seconds_total",
    ["thread", "number"],
    "Processor time of each thread, by main, ingress, io, cluster, decode, keys, or other for " +
      "all others together; threads of one kind are numbered from 0. Its rate is the thread's " +
      "utilization, 1 for a whole processor. Linux only.",
  ),
  counter(
    "touchdown_upgrades_total",
    ["result"],
    "Upgrades, by succeeded (the successor serves) or failed (this process serves on). A " +
      "successor continues the counts; a restart begins anew.",
  ),
  gauge(
    "touchdown_upgrade_last_seconds",
    [],
    "Of the last upgrade, from the start of the successor until it served, or until the failure " +
      "was known; NaN before the first.",
  ),
  // HTTP
  counter(
    "touchdown_requests_total",
    ["outcome"],
    "Submissions, each call of a batch, by accepted or the reason of the rejection; rejected " +
      "requests to other routes, too.",
  ),
  gauge(
    "touchdown_requests_in_flight",
    [],
    "Requests that began and have no response yet, without long polls and receipt streams.",
  ),
  counter(
    "touchdown_requests_aborted_total",
    [],
    "Requests whose connection ended before the response: the client closed or reset it, or " +
      "sent more before the response than the edge keeps; also long polls and receipt streams " +
      "that their clients end.",
  ),
  counter(
    "touchdown_responses_deferred_total",
    ["reason"],
    "Responses deferred, by yield (to the thread's next event loop turn) or backpressure (the " +
      "client does not read).",
  ),
  counter(
    "touchdown_handler_errors_total",
    [],
    "Requests whose handler failed because of a fault in the edge, which are answered `internal`.",
  ),
  gauge(
    "touchdown_responses_unread_bytes",
    [],
    "Bytes of responses that clients have not read yet.",
  ),
  gauge("touchdown_client_connections", [], "Open client connections."),
  counter(
    "touchdown_client_connections_closed_total",
    ["reason"],
    "Client connections that the edge closed, by too_many, framing (or a body that is too large " +
      "to read), empty_body (a flood of HEAD or OPTIONS) or backpressure (too many unread " +
      "bytes), and by ingress threads evicted (idle for longest when too many were open, or with " +
      "a response unread where too many are), address (connection limit of one address) or slow " +
      "(head or body incomplete after its timeout).",
  ),
  histogram(
    "touchdown_response_seconds",
    [],
    "From a request's last byte to its response, of transactions that were validated, " +
      "accepted or not.",
  ),
  counter(
    "touchdown_duplicate_submissions_total",
    [],
    "Submissions of a recently accepted transaction, answered without validating it again; one " +
      "in flight may be resent.",
  ),
  counter(
    "touchdown_dedup_evictions_total",
    [],
    "Transactions evicted early from the full dedup cache: a repeated submission counts as new.",
  ),
  ...INGRESS_THREAD_METRICS,
  gauge(
    "touchdown_keys",
    [],
    "API keys and public keys that are known now; a public key that follows from an API key " +
      "is counted with that key, not by itself.",
  ),
  counter(
    "touchdown_keys_loads_total",
    ["result"],
    "Loads of the keys, by ok or failed; after a failed one the old keys stay.",
  ),
  gauge(
    "touchdown_keys_connected",
    [],
    "1 while the accounts database tells this edge of changed keys, else 0; NaN with a keys file.",
  ),
  gauge(
    "touchdown_keys_age_seconds",
    [],
    "Since the keys were last known to match the database; NaN until then.",
  ),
  counter(
    "touchdown_keys_changes_total",
    [],
    "Changes of keys and plans applied from the accounts database.",
  ),
  counter(
    "touchdown_usage_batches_total",
    ["result"],
    "Batches of usage: written, failed (retried), merged for lack of space, refused (lost).",
  ),
  gauge(
    "touchdown_usage_batches_pending",
    [],
    "Batches of usage to be written to the accounts database.",
  ),
  gauge(
    "touchdown_shared_limits_connected",
    [],
    "1 while limits are shared with other edges, else 0; NaN without a store for them.",
  ),
  gauge("touchdown_shared_limits_edges", [], "Edges that share limits, as last reported."),
  // Decode
  counter(
    "touchdown_validations_total",
    ["result"],
    "Transactions validated, by accepted or the decode error that was found.",
  ),
  counter(
    "touchdown_decoded_total",
    ["path"],
    "Transactions decoded, by where: inline on the HTTP thread, on a worker, or on an " +
      "ingress_thread.",
  ),
  histogram(
    "touchdown_decode_seconds",
    [],
    "From a request's last byte to the end of validation, accepted transactions only.",
  ),
  gauge("touchdown_decode_ring_depth", [], "Transactions that wait for a worker or are with one."),
  counter(
    "touchdown_decode_ring_full_total",
    [],
    "Transactions rejected as overloaded because the ring to the workers was full, no worker " +
      "was up, or the edge was stopping.",
  ),
  gauge("touchdown_decode_workers", [], "Worker threads alive."),
  counter("touchdown_decode_worker_restarts_total", [], "Worker threads replaced after one died."),
  counter(
    "touchdown_verify_cache_lookups_total",
    ["result"],
    "Lookups of a signer's prepared public key, by hit or miss.",
  ),
  // Cluster and route
  gauge("touchdown_slot", [], "The estimated current slot; 0 until one is known."),
  gauge(
    "touchdown_slot_age_seconds",
    [],
    "Since the cluster last reported a new slot; NaN until it did.",
  ),
  counter(
    "touchdown_slot_events_total",
    ["result"],
    "Slot events of all sources, by accepted, too_far_ahead (not accepted yet), invalid and lost.",
  ),
  counter(
    "touchdown_slot_corrections_total",
    ["kind"],
    "Times the current slot became lower: went_back, when sources continue from lower slots, or " +
      "stood_still, when no slot began.",
  ),
  gauge("touchdown_slot_seconds", [], "The measured duration of a slot."),
  gauge(
    "touchdown_consensus",
    ["consensus"],
    "1 for the cluster's consensus, by unknown, tower_bft and alpenglow, else 0.",
  ),
  gauge(
    "touchdown_confirmation_stalled",
    [],
    "1 while the cluster confirms no block although slots pass, else 0.",
  ),
  gauge(
    "touchdown_slot_source_age_seconds",
    ["source"],
    "Since the last event of each slot source.",
  ),
  gauge(
    "touchdown_slot_source_lag_seconds",
    ["source"],
    "How much later than the first source each one reports a slot, smoothed.",
  ),
  gauge(
    "touchdown_slot_source_followed",
    ["source"],
    "1 for the slot source that the estimate follows now, else 0.",
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
    "touchdown_rpc_requests_suppressed_total",
    [],
    "RPC requests suppressed while a `Retry-After` of the node lasts.",
  ),
  counter(
    "touchdown_contacts_early_refreshes_total",
    [],
    "Early refreshes of the contacts, because a working leader became unreachable.",
  ),
  gauge(
    "touchdown_block_height",
    [],
    "Height of the highest confirmed block that was accepted; NaN before it is known.",
  ),
  counter(
    "touchdown_block_heights_total",
    ["result"],
    "Block heights reported: accepted, implausible, or reanchored when implausible ones " +
      "persisted and became the reference.",
  ),
  counter(
    "touchdown_cluster_thread_restarts_total",
    [],
    "Times the thread that reads the cluster was replaced because it died.",
  ),
  counter(
    "touchdown_feed_failures_total",
    ["feed"],
    "Times a subscription or poll of the cluster failed or was lost; it is retried.",
  ),
  // Send
  counter(
    "touchdown_resends_refused_total",
    [],
    "Resends that a leader did not get while 64 others to it were not acknowledged.",
  ),
  counter("touchdown_deliveries_sent_total", [], "Deliveries that were sent to leaders."),
  counter(
    "touchdown_deliveries_queued_total",
    [],
    "Deliveries that waited for a leader or its connection, highest rank first.",
  ),
  counter(
    "touchdown_deliveries_evicted_total",
    [],
    "Deliveries of the least rank that a full queue of a leader dropped or did not take.",
  ),
  counter(
    "touchdown_deliveries_ended_total",
    ["outcome"],
    "Deliveries that ended, by acked, failed (sent, and not acknowledged) or dropped (not sent).",
  ),
  counter(
    "touchdown_deliveries_unacknowledged_total",
    ["reason"],
    "Deliveries that failed or were dropped, by the reason.",
  ),
  counter(
    "touchdown_deliveries_unreported_total",
    [],
    "Deliveries that the sender ended, as expired or too_many_in_flight, because the engine did " +
      "not report their end: its event was dropped.",
  ),
  gauge(
    "touchdown_leader_connections",
    ["state"],
    "Leader addresses that the sender knows, by the state of their connection: idle (none), " +
      "connecting, waiting (no stream granted yet) or live.",
  ),
  gauge("touchdown_connections_live", [], "Live connections to leaders."),
  gauge(
    "touchdown_connections_sendable",
    [],
    "Live connections to the leaders of the current plan.",
  ),
  gauge(
    "touchdown_connections_outdated",
    [],
    "Live connections that still use the previous identity and are being replaced.",
  ),
  counter(
    "touchdown_connections_over_limit_total",
    [],
    "Times that a plan's leader got no connection because of send.connections.",
  ),
  counter("touchdown_identity_changes_total", [], "Changes of the identity that leaders see."),
  counter(
    "touchdown_connection_attempts_total",
    ["result"],
    "Connection attempts that ended, by live (the leader granted a stream) or failed.",
  ),
  counter(
    "touchdown_connections_ended_total",
    ["reason"],
    "Connections and connection attempts that ended, by the reasons of /leaders/stats.",
  ),
  counter(
    "touchdown_connection_probes_failed_total",
    [],
    "Connections that did not respond just before their leader's window.",
  ),
  counter(
    "touchdown_engine_drops_total",
    ["kind"],
    "Drops in the engine: event (the delivery's end is reported seconds late) and datagram, for " +
      "lack of space; datagram_rejected by the system, such as a probe that is too large; and " +
      "panic.",
  ),
  gauge(
    "touchdown_leaders",
    ["client", "reachable"],
    "Known leaders, by validator client and whether they are reachable.",
  ),
  gauge(
    "touchdown_leader_round_trip_seconds",
    ["leader"],
    "Round trip to the leaders with the most deliveries.",
  ),
  counter(
    "touchdown_leader_deliveries_total",
    ["leader", "outcome"],
    "Deliveries of the leaders with the most, by sent, acked or saturated.",
  ),
  gauge(
    "touchdown_leader_landed_share",
    ["leader"],
    "Landed transactions in a leader's blocks, divided by the deliveries that it acknowledged; " +
      "of the same leaders.",
  ),
  histogram(
    "touchdown_first_send_seconds",
    [],
    "From a request's last byte until the first delivery was written to a leader's connection.",
  ),
  histogram(
    "touchdown_delivery_ack_seconds",
    [],
    "From writing a delivery until the leader acknowledged all of it.",
  ),
  // Landing
  counter(
    "touchdown_transactions_accepted_total",
    [],
    "Transactions accepted; each is in flight or has one outcome.",
  ),
  gauge("touchdown_transactions_in_flight", [], "Transactions without an outcome yet."),
  counter(
    "touchdown_transactions_total",
    ["outcome"],
    "Transactions with an outcome: landed, expired or dropped.",
  ),
  counter(
    "touchdown_transactions_lost_total",
    ["reason"],
    "Transactions that ended without landing, by the reason.",
  ),
  counter(
    "touchdown_transactions_landed_with_error_total",
    [],
    "Transactions that landed with an error.",
  ),
  counter(
    "touchdown_tips_accepted_lamports_total",
    ["plan"],
    "Tips of accepted transactions, by the plan of the key that sent them first, or other for " +
      "plans beyond the first 64.",
  ),
  counter(
    "touchdown_tips_landed_lamports_total",
    ["plan"],
    "Tips of transactions that landed without an error after they were received; one that landed " +
      "with an error pays none.",
  ),
  counter(
    "touchdown_duplicate_submissions_merged_total",
    [],
    "Duplicate submissions merged with a transaction in flight.",
  ),
  histogram(
    "touchdown_landing_slots",
    [],
    "Slots from the one in progress at receipt to the one of landing; le is in slots.",
  ),
  counter(
    "touchdown_marks_cleared_total",
    ["reason"],
    "Times all transactions became due for all leaders, as what these had may be lost: " +
      "slot_back, unconfirmed, or refused, when it happened too often.",
  ),
  counter(
    "touchdown_resends_total",
    ["result"],
    "Resends of transactions, by sent (a copy left), shed (the next round began before it), " +
      "or superseded by an ingress thread that has just sent the transaction.",
  ),
  counter(
    "touchdown_status_requests_total",
    ["result"],
    "Requests for statuses to the cluster, by answered, failed or late.",
  ),
  counter(
    "touchdown_statuses_requested_total",
    [],
    "Transactions in those requests, each time counted.",
  ),
  counter(
    "touchdown_blockhash_checks_total",
    ["result"],
    "Blockhashes that the node was asked for, by known, unknown or failed.",
  ),
  gauge(
    "touchdown_node_reports_statuses",
    [],
    "1 while the node reports statuses, 0 while it reports none, NaN before either is known.",
  ),
  gauge("touchdown_status_lag_seconds", [], "Delay of the most overdue status request."),
  counter(
    "touchdown_processed_total",
    ["result"],
    "Transactions seen in a processed block: seen, rolled_back, omitted for newer blocks.",
  ),
  // Receipts
  gauge("touchdown_receipts", [], "Receipts kept."),
  counter(
    "touchdown_receipts_evicted_total",
    ["reason"],
    "Receipts evicted, by expired (kept as long as promised) or capacity (too many).",
  ),
  counter("touchdown_receipts_untracked_total", [], "Outcomes without a receipt."),
  counter(
    "touchdown_receipt_reads_total",
    ["outcome"],
    "Requests for receipts with a valid key, by admitted or limited.",
  ),
  gauge("touchdown_receipt_long_polls", [], "Responses held until a transaction has an outcome."),
  counter(
    "touchdown_receipt_long_polls_total",
    ["outcome"],
    "Long polls, by how they ended: reached, timed_out, drained, aborted or rejected.",
  ),
  gauge("touchdown_receipt_streams", [], "Open receipt streams."),
  counter(
    "touchdown_receipt_streams_total",
    ["event"],
    "Receipt streams: opened, rejected, closed_slow, closed_key, and gap for changes missed.",
  ),
  counter("touchdown_receipt_events_total", [], "Events written to receipt streams."),
] as const satisfies readonly MetricRow[];
