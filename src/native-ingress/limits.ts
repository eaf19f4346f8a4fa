/** Fixed bounds of `native-ingress`; `core/limits.ts` holds those that several parts share. */

/** Records of one front that the main thread has not read: 4.4 MB; a power of two. */
export const RECORD_RING_SLOTS = 1_024;
/** Records taken into the books before a front that waits for the processor has its turn. */
export const RECORDS_PER_SLICE = 8;
/** From so many unread records on of any front they have to wait, lest its ring fill up. */
export const RECORDS_BACKLOG_MAX = 192;
/** The longest wait for fronts to finish what is in hand when they are stopped. */
export const INGRESS_THREADS_STOP_MS_MAX = 30_000;
/** The longest wait for a front's thread that was told to end at once. */
export const INGRESS_THREAD_EXIT_MS_MAX = 1_000;
