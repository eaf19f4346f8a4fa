/**
 * Fixed bounds that several parts share. A part keeps its own in its `limits.ts`; operator settings
 * are in `config/table.ts`. Values that the network dictates carry their source and the date of the
 * check.
 */

/** Largest legacy or v0 transaction, in bytes. Agave `agave-transaction-view`, 2026-11. */
export const LEGACY_TRANSACTION_BYTES_MAX = 1232;
/** Largest v1 transaction, in bytes. SIMD-0296, 2026-11. */
export const V1_TRANSACTION_BYTES_MAX = 4096;
/** Receipts that one list shows, and that it checks to find them. */
export const RECEIPT_LIST_MAX = 200;
export const RECEIPT_LIST_STEPS_MAX = 20_000;
/**
 * Simultaneous connections to leaders; Anza's own client caches 64 (`tpu-client-next`, 2026-11).
 */
export const LEADERS_CONNECTED_MAX = 64;
/** Deliveries queued for one leader. Anza's own client queues 128 (`tpu-client-next`, 2026-11). */
export const DELIVERIES_QUEUED_MAX = 128;
/** Datagrams that one connection sends per flush; a larger flush is an error. */
export const FLUSH_DATAGRAMS_MAX = 256;
/** Maximum number of signatures of a transaction, 2026-11. */
export const SIGNATURES_MAX = 12;
/** Slot sources agree when they are at most this many slots apart: the time of a slow poll. */
export const SLOT_AGREE_DISTANCE = 4;
/** Shortest and longest slot time that is accepted, in milliseconds. */
export const SLOT_TIME_MS_MIN = 100;
export const SLOT_TIME_MS_MAX = 1000;
/** Epochs held: previous, current, next. */
export const EPOCHS_MAX = 3;
/** Largest accepted epoch, in slots. Mainnet has 432,000; 2026-11. */
export const EPOCH_SLOTS_MAX = 1_000_000;
/** Contacts kept. The largest cluster gossips about 5,000; 2026-11. */
export const CONTACTS_MAX = 32_768;
/**
 * Slots that a leader may be ahead of its window and still keep what it receives. Agave drops what
 * arrives 20 slots early (`banking_stage/decision_maker.rs`, 4.3, 2026-11).
 */
export const SEND_SLOTS_AHEAD_MAX = 19;
/** Shortest and longest API key, in characters. */
export const TOKEN_CHARS_MIN = 16;
export const TOKEN_CHARS_MAX = 128;
/** Rate limit states kept for accounts and keys; when full, each new one evicts another. */
export const LIMITED_ACCOUNTS_MAX = 262_144;
/** Connections open at the same time; above it a new one is closed. */
export const HTTP_CONNECTIONS_MAX = 20_000;
/** Connections of QUIC clients, and those of one account; configuration can change both. */
export const QUIC_CONNECTIONS_MAX = 10_000;
export const QUIC_CONNECTIONS_PER_ACCOUNT_MAX = 1_000;
/** Blocks for which a blockhash is valid. Agave `MAX_PROCESSING_AGE`, 2026-11. */
export const BLOCKHASH_AGE_MAX = 150;
/** Signatures per request. Agave `MAX_GET_SIGNATURE_STATUSES_QUERY_ITEMS`, 2026-11. */
export const STATUSES_PER_REQUEST = 256;
/** Leaders that the native engine's threads send to: the deliveries that it takes per call. */
export const TARGETS_MAX = 16;
/** Maximum length of the name of an account or plan, or of a key's label, in characters. */
export const ACCOUNT_NAME_CHARS_MAX = 64;
/** Highest rate of a plan, in requests per second, and its highest burst. */
export const PLAN_RATE_MAX = 1_000_000;
export const PLAN_BURST_MAX = 1_000_000;
