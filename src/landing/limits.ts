/** Fixed limits of `landing`; `core/limits.ts` holds those that several parts share. */

/** Buffer bytes per tracked transaction; when it is full, the oldest ends as dropped. */
export const IN_FLIGHT_BYTES_MEAN = 1024;
/** Plans whose tips are counted separately; those of further plans are counted together. */
export const TIP_PLANS_MAX = 64;
/** How long a leader drops identical packets. Agave `core/src/sigverify_stage.rs`, 2026-11. */
export const RESEND_SAME_LEADER_MS = 2_000;
/**
 * A copy that leaves later than this after the time of the transaction's entry in the dedup cache
 * renews the entry. Entries live longer than `RESEND_SAME_LEADER_MS` by more than this.
 */
export const SENT_LATE_MS = 50;
/** Leaders beyond one plan that can have received a transaction in that time. */
export const RECENT_RECIPIENTS_SPARE = 4;
/** Minimum time between two sends of one transaction, in milliseconds: a slot or two. */
export const RESEND_PAUSE_MS = 400;
/**
 * Clears of all marks in a row, and the time until one more is allowed. One each 400 ms, of which
 * plans leave one each two slots, suffices for two minutes without a confirmed block.
 */
export const MARK_CLEARS_MAX = 256;
/** Of these, those that clears with a plan leave for a step back and the end of a standstill. */
export const MARK_CLEARS_RESERVED = 16;
export const MARK_CLEAR_GAP_MS = 400;
export const MARK_CLEAR_REFILL_MS = 5_000;
/** Blocks by which the newest block may exceed the newest known height. */
export const BLOCKHASH_SLACK_BLOCKS = 16;
/** Blocks by which the cluster must be past a blockhash's last height, because of forks. */
export const EXPIRY_MARGIN_BLOCKS = 8;
/**
 * Slots that a status response certainly covers. Agave's status cache holds 300 rooted slots,
 * 2026-11.
 */
export const STATUS_SPAN_SLOTS = 280;
/** The share of slots without a block that an estimate of slots from block heights allows for. */
export const SKIPPED_SHARE_MAX = 0.1;
/**
 * Slots by which a node on deleted blocks may go on after the cluster used their slot numbers
 * again: as many as it was late, 8 s.
 */
export const STATUS_DELETED_SLOTS_MAX = 32;
/** Transactions ended per slice; about 2 us each. */
export const LANDINGS_PER_SLICE = 64;
/**
 * Slots confirmed last for which a transaction may still be reported: as many as pass in several
 * seconds, by which a stream may report it late.
 */
export const SLOTS_CONFIRMED_KEPT = 32;
/**
 * How long a processed block has to be confirmed where no status comes: the 32 slots after which a
 * stream reports it again, as final, and some more. In milliseconds.
 */
export const PASSED_OVER_MS = 15_000;
/** Rows checked per slice; about 100 ns each, 700 when a row first ages. */
export const CHECKS_PER_SLICE = 2_048;
/** Blockhashes in one request, and the minimum time between two requests, in milliseconds. */
export const BLOCKHASHES_PER_REQUEST = 100;
export const BLOCKHASH_CHECK_PERIOD_MS = 1_000;
/** Minimum time between two questions for the same blockhash, in milliseconds. */
export const BLOCKHASH_CHECK_GAP_MS = 2_000;
/** Blockhashes whose check is kept; a question for further ones waits until one is old. */
export const BLOCKHASHES_CHECKED_MAX = 1_024;
/**
 * Slots by which the node must be past a transaction's arrival before its word counts that it does
 * not know the blockhash: two windows, more than a fork of the newest blocks lasts.
 */
export const BLOCKHASH_MARGIN_SLOTS = 8;
/** Concurrent status requests; further due rows wait. */
export const STATUS_REQUESTS_MAX = 4;
/** Status request timeout, in milliseconds. */
export const STATUS_DEADLINE_MS = 5_000;
