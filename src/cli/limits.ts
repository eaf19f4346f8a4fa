/** Fixed bounds of `cli`; `core/limits.ts` holds those that several parts share. */

/** Longest wait for work in hand when a service stops, in milliseconds. */
export const STOP_MS_MAX = 30_000;
/** Longest wait for one answer of `/readyz`, in milliseconds. */
export const READY_PROBE_MS_MAX = 2_000;
/** Wait between two questions of `ready`, in milliseconds. */
export const READY_POLL_MS = 200;
/** Longest wait of `send` for its answer, in milliseconds. */
export const SEND_RESPONSE_MS_MAX = 15_000;
/** Most that a command reads from standard input or as one small file, in bytes. */
export const COMMAND_INPUT_BYTES_MAX = 64 * 1024;
/** Keys that `keys list` reads at a time. */
export const KEYS_LISTED_PER_PAGE = 500;
