/** Fixed bounds of `accounts`; `core/limits.ts` holds those that several parts share. */

/** Keys that an edge knows at a time. */
export const KEYS_MAX = 4_000_000;
/** Rows of one batch of usage, 260 kB; the database takes up to 20,000. */
export const USAGE_BATCH_ROWS_MAX = 1_000;
/** Rows of usage that are put into words in one turn of the event loop; some 5 us each. */
export const USAGE_ROWS_PER_SLICE = 32;
/** What waits while the database is away: rows of usage, and periods that they are of. */
export const USAGE_ROWS_WAITING_MAX = 320_000;
export const USAGE_ROUNDS_MAX = 1_024;
/**
 * Packets whose key is remembered until their end is known: at 7,000 a second those of the 75 s in
 * which a blockhash grows too old. 25 bytes each.
 */
export const USAGE_PACKETS_MAX = 524_288;
/** Accounts whose shared limit is known here at a time. */
export const SHARED_ACCOUNTS_MAX = 100_000;
/** Accounts that are told to the store of shared limits in one round; it looks at twice as many. */
export const SHARED_ROUND_MAX = 1_000;
/** Of them, in one turn of the event loop; some 10 us each, its answer included. */
export const SHARED_LIMITS_SENT_PER_SLICE = 16;
/** Buckets of other threads that are looked at before a round; some 50 ns each. */
export const SHARED_LIMITS_READ_PER_ROUND = 4_096;
/** Longest wait for the store of shared limits, in milliseconds. */
export const LIMIT_STORE_MS_MAX = 1_000;
/** Longest line of the key journal, in bytes: what one change of very many keys takes. */
export const KEY_JOURNAL_LINE_BYTES_MAX = 64 * 1024 * 1024;
/** Changes that are applied one by one; of more, everything is read instead. */
export const KEY_CHANGES_MAX = 10_000;
/** Wait after the accounts database could not be read, in milliseconds. */
export const KEY_SYNC_RETRY_MS = 500;
/** How often changes are looked for without being told of any, in milliseconds. */
export const KEY_POLL_MS = 5_000;
/** Keys that are handled between two turns of the event loop. */
export const KEY_SLICE_ROWS = 500;
/** Wait after the key journal could not be written anew, in milliseconds. */
export const KEY_JOURNAL_RETRY_MS = 30_000;
/** Largest keys file, in bytes: about a million keys. */
export const KEYS_FILE_BYTES_MAX = 256 * 1024 * 1024;
/** Problems of a keys file that one message names; the rest is counted. */
export const KEYS_FILE_PROBLEMS_MAX = 50;
/** Connections to the accounts database at a time, when nothing else is said. */
export const DATABASE_CONNECTIONS_MAX = 8;
/** Statements that wait for a connection to the accounts database. */
export const DATABASE_WAITING_MAX = 256;
/** Longest wait for a connection to the accounts database, in milliseconds. */
export const DATABASE_CONNECT_MS_MAX = 5_000;
/** Longest time of one statement, in milliseconds. */
export const DATABASE_STATEMENT_MS_MAX = 10_000;
/** Bytes of a copy that are taken in one turn of the event loop; a piece may go beyond it. */
export const DATABASE_SNAPSHOT_BYTES_PER_SLICE = 16 * 1024;
/** A copy of which nothing came for so long, twice at most, is given up; in milliseconds. */
export const DATABASE_SNAPSHOT_STALL_MS_MAX = 15_000;
/** How often a transaction is tried when others are in its way. */
export const DATABASE_TRANSACTION_ATTEMPTS_MAX = 4;
/** The wait before a lost channel is opened anew; doubled each time up to the longest. */
export const DATABASE_RETRY_MS_MIN = 100;
export const DATABASE_RETRY_MS_MAX = 5_000;
/** How often a channel on which nothing is heard is asked for a sign of life. */
export const DATABASE_LISTEN_HEARTBEAT_MS = 15_000;
