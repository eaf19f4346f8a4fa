/** Fixed bounds of `dedup`; `core/limits.ts` holds the bounds that several parts share. */

/** Accepted transactions kept for duplicate detection. */
export const DEDUP_TRANSACTIONS_MAX = 65_536;
/** Bytes of accepted transactions kept, allocated once. */
export const DEDUP_BYTES_MAX = 32 * 1024 * 1024;
/** How long a leader drops identical packets. Agave `core/src/sigverify_stage.rs`, 2026-11. */
export const DEDUP_KEEP_MS = 2_000;
