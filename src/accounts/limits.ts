/** Limits of `accounts`; limits that several parts share are in `core/limits.ts`. */

/** Maximum keys in an edge's table. */
export const KEYS_MAX = 4_000_000;
/** Rows per usage batch, 260 kB; the database accepts up to 20,000. */
export const USAGE_BATCH_ROWS_MAX = 1_000;
/** Usage rows serialized per event-loop turn; about 5 us each. */
export const USAGE_ROWS_PER_SLICE = 32;
/** Maximum usage rows, and their periods, that wait while the database is unavailable. */
export const USAGE_ROWS_WAITING_MAX = 320_000;
export const USAGE_ROUNDS_MAX = 1_024;
/**
 * Packets whose key is remembered until their final state is known: at 7,000 per second those of
 * the 75 s in which a blockhash expires. 25 bytes each.
 */
export const USAGE_PACKETS_MAX = 524_288;
/** Maximum accounts whose global limit is tracked here. */
export const GLOBAL_ACCOUNTS_MAX = 100_000;
/** Accounts reported to the limit store per round; a round checks twice as many. */
export const GLOBAL_ROUND_MAX = 1_000;
/** Of those, accounts per event-loop turn; about 10 us each, including the response. */
export const GLOBAL_LIMITS_SENT_PER_SLICE = 16;
/** Buckets of other threads checked before a round; about 50 ns each. */
export const GLOBAL_LIMITS_READ_PER_ROUND = 4_096;
/** Timeout of the limit store in milliseconds. */
export const LIMIT_STORE_MS_MAX = 1_000;
/** Maximum line of the key journal in bytes: one change of very many keys. */
export const KEY_JOURNAL_LINE_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum changes applied individually; above this, the edge reads all keys. */
export const KEY_CHANGES_MAX = 10_000;
/** Delay after a failed read from the accounts database, in milliseconds. */
export const KEY_SYNC_RETRY_MS = 500;
/** Interval of polling for changes without a notification, in milliseconds. */
export const KEY_POLL_MS = 5_000;
/** Keys processed between two event-loop turns. */
export const KEY_SLICE_ROWS = 500;
/** How long an expired key is refused as expired; after that it is unknown. Milliseconds. */
export const KEY_EXPIRED_KEPT_MS = 86_400_000;
/** Delay after a failed rewrite of the key journal, in milliseconds. */
export const KEY_JOURNAL_RETRY_MS = 30_000;
/** Maximum keys file in bytes: about a million keys. */
export const KEYS_FILE_BYTES_MAX = 256 * 1024 * 1024;
/** Problems of a keys file listed in one message; the rest are counted. */
export const KEYS_FILE_PROBLEMS_MAX = 50;
/** Default maximum connections to the accounts database. */
export const DATABASE_CONNECTIONS_MAX = 8;
/** Maximum statements waiting for a connection to the accounts database. */
export const DATABASE_WAITING_MAX = 256;
/** Timeout of connecting to the accounts database, in milliseconds. */
export const DATABASE_CONNECT_MS_MAX = 5_000;
/** How long the end of a connection waits for the server, in milliseconds. */
export const DATABASE_CLOSE_MS_MAX = 1_000;
/** Statement timeout in milliseconds. */
export const DATABASE_STATEMENT_MS_MAX = 10_000;
/** Bytes of a copy processed per event-loop turn; a chunk may exceed it. */
export const DATABASE_SNAPSHOT_BYTES_PER_SLICE = 16 * 1024;
/** A copy is aborted after 1 to 2 times this period without data; in milliseconds. */
export const DATABASE_SNAPSHOT_STALL_MS_MAX = 15_000;
/** Maximum attempts of a transaction that conflicts with others. */
export const DATABASE_TRANSACTION_ATTEMPTS_MAX = 4;
/** Delay before a lost channel is reopened; doubles each time up to the maximum. */
export const DATABASE_RETRY_MS_MIN = 100;
export const DATABASE_RETRY_MS_MAX = 5_000;
/** Interval of queries on a silent channel. */
export const DATABASE_LISTEN_HEARTBEAT_MS = 15_000;
