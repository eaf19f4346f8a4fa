/** Fixed bounds of `limits`; `core/limits.ts` holds those that several parts share. */

/**
 * Keys that threads which take requests may let in by themselves: 0.8 kB each on the main thread
 * and 0.3 on every other one.
 */
export const CACHED_KEYS_MAX = 16_384;
/** Of them, held against the keys in one turn of the event loop; some 0.4 us each. */
export const KEY_REVIEWS_PER_SLICE = 512;
/** And of those taken back: two messages each, 6 us on either thread. */
export const KEY_REVOCATIONS_PER_SLICE = 64;
/** Once there are as many: looks for one's place, and how long after the last such looks. */
export const KEY_SLOT_SCANS_MAX = 8;
export const KEY_SLOT_SCAN_MS = 10;
