/** Fixed bounds of `engine`; `core/limits.ts` holds the bounds that several parts share. */

/** Signers whose key tables, 64 kB each, the native engine keeps for all threads. */
export const NATIVE_KEYS_MAX = 512;
/** Public keys that each thread caches for verification; about 10 MB when full. */
export const DECODE_KEYS_MAX = 4096;
/** Unread units of events, 64 bytes each, at which no submission is written. */
export const SUBMISSION_UNITS_MAX = 49_152;
/** One more than unread submissions can be, which have 9 units or more. */
export const OWN_NUMBERS = Math.floor(SUBMISSION_UNITS_MAX / 9) + 1;
/** Unread units of events from which on the main thread reads them after its own submissions. */
export const OWN_UNITS_MAX = 256;
/** Keys of ingress threads' records whose account and plan are kept; then all are forgotten. */
export const SUBMITTERS_MAX = 16_384;
/** How long the I/O thread polls for work before it sleeps, where enabled. */
export const BUSY_POLL_US = 1_000;
/** With fewer processors, polling takes time from threads that have work. */
export const BUSY_POLL_PROCESSORS_MIN = 4;
