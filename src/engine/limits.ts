/** Fixed bounds of `engine`; `core/limits.ts` holds the bounds that several parts share. */

/** Signers whose key tables, 64 kB each, the native engine keeps for all threads. */
export const NATIVE_KEYS_MAX = 512;
/** Public keys that each thread caches for verification; about 10 MB when full. */
export const DECODE_KEYS_MAX = 4096;
/** Slots of the record ring of all threads: 9.5 MB; a power of two. */
export const RECORD_RING_SLOTS = 2_048;
/** Reads of a pending record's state without a pause, and with one: 10 us, and 50 ms. */
export const PENDING_SPINS = 500;
export const PENDING_TRIES_MAX = 1_500;
export const PENDING_PAUSE_MS = 0.05;
/** Records processed before accounting yields to ingress threads. */
export const RECORDS_PER_SLICE = 8;
/** Unread records from which on accounting does not yield. */
export const RECORDS_BACKLOG_MAX = 192;
/** Unread records from which on the main thread reads them after a turn with submissions. */
export const OWN_RECORDS_MAX = 16;
/** Keys of ingress threads' records whose account and plan are kept; then all are forgotten. */
export const SUBMITTERS_MAX = 16_384;
/** How long the I/O thread polls for work before it sleeps, where enabled. */
export const BUSY_POLL_US = 1_000;
/** With fewer processors, polling takes time from threads that have work. */
export const BUSY_POLL_PROCESSORS_MIN = 4;
