/** Fixed bounds of `native-ingress`; `core/limits.ts` holds the bounds that several parts share. */

/** Slots of one ingress thread's record ring: 4.4 MB; a power of two. */
export const RECORD_RING_SLOTS = 1_024;
/** Records processed before accounting yields to ingress threads. */
export const RECORDS_PER_SLICE = 8;
/** Unread records of any ingress thread from which on accounting does not yield. */
export const RECORDS_BACKLOG_MAX = 192;
/** The longest wait for ingress threads to finish pending requests when they are stopped. */
export const INGRESS_THREADS_STOP_MS_MAX = 30_000;
/** The maximum wait for an ingress thread after the command to exit immediately. */
export const INGRESS_THREAD_EXIT_MS_MAX = 1_000;
