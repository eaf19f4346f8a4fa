/** Fixed bounds of `landing`; `core/limits.ts` holds those that several parts share. */

/**
 * Bytes of transactions in flight that there is room for, for each that is watched; when it runs
 * out, the oldest ends as dropped.
 */
export const IN_FLIGHT_BYTES_MEAN = 1024;
/** How long a leader drops identical packets. Agave `core/src/sigverify_stage.rs`, 2026-11. */
export const RESEND_SAME_LEADER_MS = 2_000;
/** Leaders that a transaction can have been sent to in that time, besides those of one plan. */
export const RECENT_RECIPIENTS_SPARE = 4;
/** Shortest time between two sends of one transaction, in milliseconds: a slot or two. */
export const RESEND_PAUSE_MS = 400;
/** Blocks by which the newest block may be above the newest height that is known. */
export const BLOCKHASH_SLACK_BLOCKS = 16;
/** Blocks by which the cluster has to be past a blockhash's last one, for the sake of forks. */
export const EXPIRY_MARGIN_BLOCKS = 8;
/**
 * Slots that an answer on a signature's status surely reaches back. Agave's status cache holds 300
 * rooted slots, 2026-11.
 */
export const STATUS_SPAN_SLOTS = 280;
/** Transactions ended in one turn where a block or an answer tells of more; some 2 us each. */
export const LANDINGS_PER_SLICE = 64;
/** Of all that is in flight, looked at in one turn; some 100 ns each, 700 where it first ages. */
export const CHECKS_PER_SLICE = 2_048;
/** Requests for statuses at a time; what is due beyond them waits. */
export const STATUS_REQUESTS_MAX = 4;
/** How long a request for statuses is waited for, in milliseconds. */
export const STATUS_DEADLINE_MS = 5_000;
