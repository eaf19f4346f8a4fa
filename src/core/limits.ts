/**
 * Every fixed bound of the process in one place. What an operator may change is in `config/`
 * instead; what the network dictates carries its source and the date it was checked.
 */

/** Largest legacy or v0 transaction, in bytes. Agave `agave-transaction-view`, 2026-11. */
export const LEGACY_TRANSACTION_BYTES_MAX = 1232;
/** Largest v1 transaction, in bytes. SIMD-0296, 2026-11. */
export const V1_TRANSACTION_BYTES_MAX = 4096;
/** Largest body of the binary endpoint, in bytes; above it 413 and the connection is closed. */
export const RAW_BODY_BYTES_MAX = 16 * 1024;
/** Largest body of the JSON-RPC endpoint, in bytes; above it 413 and the connection is closed. */
export const RPC_BODY_BYTES_MAX = 128 * 1024;
/** Most calls in one JSON-RPC batch. */
export const RPC_BATCH_CALLS_MAX = 16;
