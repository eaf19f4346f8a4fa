/** Fixed bounds of `limits`; `core/limits.ts` holds the bounds that several parts share. */

/**
 * Keys that ingress threads may cache: 0.8 kB each on the main thread and 0.3 kB on every ingress
 * thread.
 */
export const CACHED_KEYS_MAX = 16_384;
/** Cached keys checked against the key table per event loop turn; about 0.4 us each. */
export const KEY_REVIEWS_PER_SLICE = 512;
/** Revocations per event loop turn: two messages each, 6 us on either thread. */
export const KEY_REVOCATIONS_PER_SLICE = 64;
/** When the cache is full: slots scanned for an eviction, and the interval between scans. */
export const KEY_SLOT_SCANS_MAX = 8;
export const KEY_SLOT_SCAN_MS = 10;
