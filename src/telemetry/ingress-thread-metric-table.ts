/** The metrics of ingress threads, rows of the edge's table. */

import { counter, gauge } from "./metric-rows.ts";

export const INGRESS_THREAD_METRICS = [
  gauge(
    "touchdown_ingress_threads",
    [],
    "Native threads that accept transactions over HTTP and send them.",
  ),
  counter(
    "touchdown_ingress_requests_proxied_total",
    [],
    "Requests that an ingress thread proxied to the main thread: those that are no submissions, " +
      "and those with an unusual head.",
  ),
  counter(
    "touchdown_ingress_rejection_records_dropped_total",
    [],
    "Rejections of ingress threads that usage and the dashboard's list do not have, because " +
      "half of the events' room for submissions was unread; touchdown_requests_total has them.",
  ),
  gauge(
    "touchdown_engine_events_unread_bytes",
    [],
    "The most that the native engine's threads had written and the main thread had not read, " +
      "since these metrics were last read: submissions and outcomes. At 3 MB submissions are " +
      "refused.",
  ),
  counter(
    "touchdown_ingress_sends_corked_total",
    [],
    "Transactions that ingress threads corked and sent together with others.",
  ),
  counter(
    "touchdown_tls_handshakes_total",
    ["result"],
    "TLS handshakes of clients, by full, resumed (by a session ticket), failed (the two sides do " +
      "not agree, or the client refuses the certificate), not_tls, timed_out, or aborted.",
  ),
  gauge(
    "touchdown_tls_certificate_not_before_timestamp_seconds",
    ["protocol"],
    "Since when the certificate of http or quic is valid, in seconds since 1970.",
  ),
  gauge(
    "touchdown_tls_certificate_expiry_timestamp_seconds",
    ["protocol"],
    "When the certificate of http or quic expires, in seconds since 1970.",
  ),
  counter(
    "touchdown_tls_certificate_loads_total",
    ["protocol", "result"],
    "Loads of that certificate, by ok or failed; after a failed one the old certificate stays.",
  ),
  gauge("touchdown_quic_connections", [], "Open QUIC connections of clients with a valid key."),
  gauge("touchdown_quic_handshakes", [], "QUIC handshakes of clients in progress."),
  gauge(
    "touchdown_quic_followers",
    [],
    "QUIC clients that want receipts, and transactions whose verdict waits for their end.",
  ),
  counter("touchdown_quic_connections_total", [], "QUIC connections of clients with a valid key."),
  counter(
    "touchdown_quic_handshakes_refused_total",
    [],
    "QUIC handshakes refused, because too many connections or handshakes were open, in all or of " +
      "one address, because this edge drains, or because they took too long.",
  ),
  counter(
    "touchdown_quic_handshakes_delayed_total",
    [],
    "First packets of QUIC clients that were ignored, because too many came in a second, in all " +
      "or of one address; their clients send them again.",
  ),
  counter(
    "touchdown_quic_retries_total",
    [],
    "QUIC clients that first had to prove their address, because many handshakes were open.",
  ),
  counter(
    "touchdown_quic_streams_aborted_total",
    [],
    "Streams of QUIC clients that ended before their last byte arrived.",
  ),
  counter(
    "touchdown_quic_datagrams_dropped_total",
    [],
    "Datagrams to QUIC clients that the kernel did not take.",
  ),
  counter(
    "touchdown_quic_datagrams_refused_total",
    [],
    "Datagrams of QUIC clients that were too large, cannot be answered, or were refused.",
  ),
  counter(
    "touchdown_quic_datagrams_forwarded_total",
    [],
    "Datagrams of QUIC clients that another ingress thread received, and passed on to theirs.",
  ),
  counter(
    "touchdown_quic_forwards_dropped_total",
    [],
    "Datagrams of QUIC clients that another ingress thread received, and theirs did not keep up.",
  ),
  counter(
    "touchdown_quic_receipts_dropped_total",
    [],
    "Receipts that QUIC clients were too slow to read.",
  ),
  counter(
    "touchdown_quic_receipts_missed_total",
    [],
    "Changes of receipts that were dropped from the log before QUIC clients were sent them.",
  ),
  counter(
    "touchdown_quic_streams_withheld_total",
    [],
    "Looks at which a QUIC client got fewer streams than its limits admit, because it left too " +
      "many verdicts unread.",
  ),
  counter(
    "touchdown_quic_landings_unawaited_total",
    [],
    "Verdicts of QUIC clients that should have waited for the transaction's end and came before: " +
      "too many waited, for too long, or it was a repetition.",
  ),
  counter(
    "touchdown_quic_panics_total",
    [],
    "Panics while QUIC clients were served, each of which ended a connection.",
  ),
] as const;
