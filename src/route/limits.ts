/** Fixed limits of `route`; `core/limits.ts` holds those that several parts share. */

/**
 * Slot events whose majority gives the current slot. Agave `recent_leader_slots.rs`, 4.3, 2026-11.
 */
export const SLOT_EVENTS_KEPT = 48;
/** Slots beyond the expected one that are still accepted. Same source. */
export const SLOT_SKIP_DISTANCE = 48;
/** How long a source without progress still has a vote: four skipped slots, a slow poll. */
export const SLOT_SOURCE_LIVE_MS = 4_000;
/**
 * How long the first source has no more weight than others, in milliseconds, and the progress
 * events a source needs before it may be followed instead.
 */
export const SLOT_SETTLE_MS = 30_000;
export const SLOT_STEPS_MIN = 8;
/**
 * Evidence that slots go on from a lower one: this many slots that ascend in a row, in
 * milliseconds; both where the cluster is likely to go back; both for answers to polls; the most
 * slots from one to the next; and how many slots later than the others one may be reported.
 */
export const SLOT_RUN_SLOTS = 3;
export const SLOT_RUN_MS = 600;
export const SLOT_RUN_LIKELY_SLOTS = 2;
export const SLOT_RUN_LIKELY_MS = 150;
export const SLOT_RUN_POLLED_SLOTS = 2;
export const SLOT_RUN_POLLED_MS = 300;
/** How long a source counts as mixed, after two of its runs were followed by higher slots. */
export const SLOT_RUN_MIXED_MS = 30_000;
export const SLOT_RUN_STEP_MAX = 8;
export const SLOT_RUN_LATE = 2;
/** Slots of a leader's window. Agave `NUM_CONSECUTIVE_LEADER_SLOTS`, 4.4, 2026-11. */
export const LEADER_WINDOW_SLOTS = 4;
/**
 * Without an event it is in doubt whether slots pass after this many slots, at most this many
 * milliseconds after the clock is as far ahead as sources that agree may be.
 */
export const SLOT_DOUBT_SLOTS = 7;
export const SLOT_DOUBT_AHEAD_MS = 800;
/** Without an event the cluster stands still after this many slots: more than two windows. */
export const SLOT_STILL_SLOTS = 10;
/** Times of its usual gap in which a source that works reports a slot. */
export const SLOT_GAPS_MAX = 2;
/**
 * Sources that go back within this time of each other went back together: one is late, or polled.
 */
export const SLOT_BACK_TOGETHER_MS = 10_000;
/** Slots for which each source remembers when it reported them. */
export const SLOT_LAG_SLOTS = 64;
/** Slots that may pass by the wall clock alone before the current slot counts as unknown. */
export const SLOT_EXTRAPOLATION_MAX = 240;
/** Slot announcements kept to determine past slots. */
export const SLOT_PAST_KEPT = 256;
/** Slots that the planner looks ahead for leaders to keep warm. */
export const PLAN_SLOTS_AHEAD_MAX = 256;
