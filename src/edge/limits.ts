/** Fixed bounds of `edge`; `core/limits.ts` holds the bounds that several parts share. */
import { RECEIPT_LONG_POLLS_MAX, RECEIPT_STREAMS_MAX } from "../http/limits.ts";

/** Open files that an edge needs at most besides its clients' connections and worker threads. */
export const EDGE_FILES_MAX = 256;
/** Open files of one worker thread: its event loop's poll and wake-up descriptors. */
export const WORKER_FILES = 4;
/**
 * Upstream connections of all ingress threads together: each long poll and each stream holds one,
 * and other requests share the rest.
 */
export const UPSTREAM_CONNECTIONS_MAX = RECEIPT_LONG_POLLS_MAX + RECEIPT_STREAMS_MAX + 128;
/** Interval at which the files of the certificate are looked at, in milliseconds. */
export const CERTIFICATE_LOOK_MS = 10_000;
/** The edge reads the files of an unusable certificate again after this time, in milliseconds. */
export const CERTIFICATE_RETRY_MS = 60_000;
/** An edge warns of a certificate that expires within this time, as the alert does. */
export const CERTIFICATE_EXPIRY_WARNING_MS = 14 * 86_400_000;
/**
 * The same as a part of its lifetime; the shorter one counts. certbot, Caddy and cert-manager renew
 * with a third left or more.
 */
export const CERTIFICATE_EXPIRY_WARNING_PART = 1 / 4;
/** Receipts, or changes of receipts, in one message to a successor. */
export const RECEIPTS_PER_SLICE = 200;
/** Interval at which changed receipts are sent to a successor, in milliseconds. */
export const RECEIPTS_ROUND_MS = 20;
/** Interval at which receipts are passed on to QUIC clients that want some, in milliseconds. */
export const QUIC_RECEIPTS_ROUND_MS = 10;
/** Interval at which it is looked whether one wants some, in milliseconds. */
export const QUIC_RECEIPTS_LOOK_MS = 250;
/** Changes of receipts that are looked at in one round. */
export const QUIC_RECEIPT_STEPS_MAX = 4096;
/** Longest wait for the replaced process where a receipt is missing, in milliseconds. */
export const CATCH_UP_MS_MAX = 250;
