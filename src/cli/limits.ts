/** Fixed bounds of `cli`; `core/limits.ts` holds the bounds that several parts share. */

/** Longest wait for pending work when a service stops, in milliseconds. */
export const STOP_MS_MAX = 30_000;
/** Longest wait for one response of `/readyz`, in milliseconds. */
export const READY_PROBE_MS_MAX = 2_000;
/** Interval between two polls of `ready`, in milliseconds. */
export const READY_POLL_MS = 200;
/** Longest wait of `send` for its response, in milliseconds. */
export const SEND_RESPONSE_MS_MAX = 15_000;
/** Maximum input from standard input or one small file, in bytes. */
export const COMMAND_INPUT_BYTES_MAX = 64 * 1024;
/** Keys that `keys list` reads per page. */
export const KEYS_LISTED_PER_PAGE = 500;
/** Shortest interval between two messages to systemd's watchdog, in milliseconds. */
export const WATCHDOG_PERIOD_MS_MIN = 10;
/** Longest wait of `doctor` for one response, in milliseconds. */
export const DOCTOR_RESPONSE_MS_MAX = 5_000;
/** Leaders that `doctor` connects to. */
export const DOCTOR_LEADERS_MAX = 4;
