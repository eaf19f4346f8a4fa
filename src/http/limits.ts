/** Fixed bounds of `http`; `core/limits.ts` holds those that several parts share. */

/** Largest body of the binary endpoint, in bytes; above it 413 and the connection is closed. */
export const RAW_BODY_BYTES_MAX = 16 * 1024;
/** Largest body of the JSON-RPC endpoint, in bytes; above it 413 and the connection is closed. */
export const RPC_BODY_BYTES_MAX = 128 * 1024;
/** Most calls in one JSON-RPC batch. */
export const RPC_BATCH_CALLS_MAX = 16;
/** Largest body of a JSON-RPC call without a key: room for getHealth, not for a transaction. */
export const KEYLESS_BODY_BYTES_MAX = 256;
/** Largest body of a JSON-RPC call on `/`, which takes no key. */
export const OPEN_BODY_BYTES_MAX = 16 * 1024;
/** Body that is read and thrown away, so that a refused client can keep its connection. */
export const UNREAD_BODY_BYTES_MAX = RPC_BODY_BYTES_MAX;
/** Answers held until a transaction has ended, in all and for each account. */
export const RECEIPT_LONG_POLLS_MAX = 4096;
export const RECEIPT_LONG_POLLS_PER_ACCOUNT_MAX = 256;
/** Of them, given in one turn of the event loop; some 20 us each. */
export const RECEIPT_RESPONSES_PER_SLICE = 16;
/** How long an answer may be held, in milliseconds: at least, at most, and when not told. */
export const RECEIPT_LONG_POLL_MS_MIN = 10;
export const RECEIPT_LONG_POLL_MS_MAX = 60_000;
export const RECEIPT_LONG_POLL_MS = 10_000;
/** Streams of receipts open at once, in all and for each account. */
export const RECEIPT_STREAMS_MAX = 512;
export const RECEIPT_STREAMS_PER_ACCOUNT_MAX = 8;
/** Characters written to a stream in one go, and changes looked at for it. */
export const RECEIPT_STREAM_CHARS_PER_ROUND = 64 * 1024;
export const RECEIPT_STREAM_STEPS_PER_ROUND = 4096;
/** Changes looked at in a round: once for all streams that are told, and for those that read on. */
export const RECEIPT_STREAM_PASS_STEPS_MAX = 65_536;
export const RECEIPT_STREAM_ALONE_STEPS_MAX = 32_768;
/** How long a stream may take in nothing before it is cut, in milliseconds. */
export const RECEIPT_STREAM_STALL_MS_MAX = 15_000;
/** Receipts that a list shows when it is not told how many. */
export const RECEIPT_LIST_DEFAULT = 50;
/** Answers that are given in one turn of the HTTP thread; further ones are given in the next. */
export const RESPONSES_PER_SLICE_MAX = 64;
/** Answers without a body, all together: so many at once and a second; more end the connection. */
export const EMPTY_RESPONSES_BURST = 1_000;
export const EMPTY_RESPONSES_PER_SECOND = 20;
/**
 * Bytes of answers that wait for their clients to read, all together; above it the connection
 * closes that took in nothing for the longest.
 */
export const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
/** Characters of a refusal's sentence that the status line repeats. */
export const STATUS_MESSAGE_CHARS_MAX = 240;
