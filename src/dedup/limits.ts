/** Fixed bounds of `dedup`; `core/limits.ts` holds those that several parts share. */

/** How many accepted transactions are remembered to tell a repetition. */
export const DEDUP_TRANSACTIONS_MAX = 65_536;
/** Bytes of accepted transactions that are remembered, allocated once. */
export const DEDUP_BYTES_MAX = 32 * 1024 * 1024;
/** How long a leader drops identical packets. Agave `core/src/sigverify_stage.rs`, 2026-11. */
export const DEDUP_KEEP_MS = 2_000;
