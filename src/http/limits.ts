/** Fixed bounds of `http`; `core/limits.ts` holds the bounds that several parts share. */

/** Largest body of the binary endpoint, in bytes; a larger one gets 413 and closes. */
export const RAW_BODY_BYTES_MAX = 16 * 1024;
/** Largest body of the JSON-RPC endpoint, in bytes; a larger one gets 413 and closes. */
export const RPC_BODY_BYTES_MAX = 128 * 1024;
/** Largest number of calls in one JSON-RPC batch. */
export const RPC_BATCH_CALLS_MAX = 16;
/** Largest JSON-RPC body without a key: room for getHealth and the like, not for a transaction. */
export const KEYLESS_BODY_BYTES_MAX = 256;
/** Largest body that is read and discarded, so that a rejected client can keep its connection. */
export const UNREAD_BODY_BYTES_MAX = RPC_BODY_BYTES_MAX;
/** Long polls for the end of a transaction: in total, and per account. */
export const RECEIPT_LONG_POLLS_MAX = 4096;
export const RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX = 256;
/** Long polls answered in one event loop turn; about 20 us each. */
export const RECEIPT_RESPONSES_PER_SLICE = 16;
/** Long-poll timeout in milliseconds: minimum, maximum, and default. */
export const RECEIPT_LONG_POLL_MS_MIN = 10;
export const RECEIPT_LONG_POLL_MS_MAX = 60_000;
export const RECEIPT_LONG_POLL_MS = 10_000;
/** Receipt streams open at the same time: in total, and per account. */
export const RECEIPT_STREAMS_MAX = 512;
export const RECEIPT_STREAMS_PER_ACCOUNT_MAX = 8;
/** Characters written to a stream per round, and changes checked for it. */
export const RECEIPT_STREAM_CHARS_PER_ROUND = 64 * 1024;
export const RECEIPT_STREAM_STEPS_PER_ROUND = 4096;
/** Changes checked per round: once for all streams at the head, and for those that catch up. */
export const RECEIPT_STREAM_PASS_STEPS_MAX = 65_536;
export const RECEIPT_STREAM_ALONE_STEPS_MAX = 32_768;
/** How long a stream's client may read nothing before the stream is closed, in milliseconds. */
export const RECEIPT_STREAM_STALL_MS_MAX = 15_000;
/**
 * How long a stream waits to learn where those of the replaced process ended, in milliseconds; then
 * it continues with an event `gap`.
 */
export const RECEIPT_STREAM_RESUME_MS_MAX = 1_000;
/** Receipts in a list without `limit`. */
export const RECEIPT_LIST_DEFAULT = 50;
/** Responses per event loop turn of the HTTP thread; further ones are deferred to the next. */
export const RESPONSES_PER_SLICE_MAX = 64;
/** Bucket for responses without a body, over all connections: burst and rate per second. */
export const EMPTY_RESPONSES_BURST = 1_000;
export const EMPTY_RESPONSES_PER_SECOND = 20;
/**
 * Bytes of all responses that clients have not read yet; above it, the connection that has read
 * nothing for the longest time is closed.
 */
export const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
/** Characters of a rejection's message that the status line repeats. */
export const STATUS_MESSAGE_CHARS_MAX = 240;
