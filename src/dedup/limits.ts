/** Fixed bounds of `dedup`; `core/limits.ts` holds the bounds that several parts share. */

/** Accepted transactions kept for duplicate detection. */
export const DEDUP_TRANSACTIONS_MAX = 65_536;
/** Bytes of accepted transactions kept, allocated once. */
export const DEDUP_BYTES_MAX = 32 * 1024 * 1024;
/**
 * How long an entry lives: the 2,000 ms for which a leader drops identical packets (Agave
 * `core/src/sigverify_stage.rs`, 2026-11), and the time by which a copy may leave after its entry's
 * time (`SENT_LATE_MS` of `landing/limits.ts`).
 */
export const DEDUP_KEEP_MS = 2_100;
