/** Fixed bounds of `engine`; `core/limits.ts` holds the bounds that several parts share. */

/** Signers whose key tables, 64 kB each, the native engine keeps for all threads. */
export const NATIVE_KEYS_MAX = 512;
/** Public keys that each thread caches for verification; about 10 MB when full. */
export const DECODE_KEYS_MAX = 4096;
/** How long the I/O thread and the workers poll for work before they sleep, where enabled. */
export const BUSY_POLL_US = 1_000;
/** With fewer processors, polling takes time from threads that have work. */
export const BUSY_POLL_PROCESSORS_MIN = 4;
