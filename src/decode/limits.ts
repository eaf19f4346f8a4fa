/** Fixed bounds of `decode`; `core/limits.ts` holds those that several parts share. */

/** Maximum static account keys of a legacy or v0 transaction (38 fill a packet), 2026-11. */
export const LEGACY_KEYS_MAX = 38;
/**
 * Maximum accounts of a transaction of any version, static and looked up: leaders drop one that
 * locks more. Agave `Bank::get_transaction_account_lock_limit`, 2026-11: 128 once a cluster
 * activates `increase_tx_account_lock_limit`, which mainnet has not.
 */
export const ACCOUNT_LOCKS_MAX = 64;
/** Maximum top-level instructions. SIMD-0160, 2026-11. */
export const INSTRUCTIONS_MAX = 64;
/** Maximum accounts of one instruction. SIMD-0406, 2026-11. */
export const INSTRUCTION_ACCOUNTS_MAX = 255;
/** Maximum address lookup tables that fit into a packet, 2026-11. */
export const LOOKUP_TABLES_MAX = 31;
/** Heap size that may be requested, in steps of 1024. `execution_budget.rs`, 2026-11. */
export const HEAP_BYTES_MIN = 32 * 1024;
export const HEAP_BYTES_MAX = 256 * 1024;
/** Maximum compute units of a transaction. `execution_budget.rs`, 2026-11. */
export const COMPUTE_UNITS_MAX = 1_400_000;
/** Bytes of a rejected body that are read to distinguish text from a damaged transaction. */
export const DIAGNOSIS_SAMPLE_BYTES_MAX = 256;
/** Transactions queued for one worker thread; a power of two. About 25 ms of its work. */
export const DECODE_RING_SLOTS = 256;
/** Pending transactions of a worker from which on it counts as behind. */
export const DECODE_BEHIND = 8;
/** Transactions per turn that the calling thread decodes itself, and while workers are behind. */
export const DECODE_INLINE_PER_TURN_MIN = 3;
export const DECODE_INLINE_PER_TURN_MAX = 6;
/** The delay before a worker thread that died is replaced; doubled each time up to the maximum. */
export const WORKER_RESTART_MS_MIN = 100;
export const WORKER_RESTART_MS_MAX = 30_000;
/** Lifetime of a worker thread after which its earlier deaths are forgotten. */
export const WORKER_SETTLED_MS = 60_000;
/** Maximum wait for worker threads to start, and to finish when they are stopped. */
export const WORKERS_START_MS_MAX = 15_000;
export const WORKERS_STOP_MS_MAX = 5_000;
/** Maximum heap of one worker thread, in megabytes. */
export const WORKER_HEAP_MB_MAX = 128;
/** The part of it for the young generation: validation results, which are short-lived. */
export const WORKER_YOUNG_MB_MAX = 6;
