/** Fixed bounds of `cli`; `core/limits.ts` holds the bounds that several parts share. */

/**
 * How long, at the end of a grace period, each response closes its connection, in milliseconds: a
 * client that sends more often than that learns of the stop from a response.
 */
export const LAST_RESPONSES_MS_MAX = 5_000;
/** Longest wait for pending work when a service stops, in milliseconds. */
export const STOP_MS_MAX = 30_000;
/**
 * Longest rest of life of a process whose successor serves, in milliseconds: the blockhash of a
 * transaction lasts for 150 slots, 60 s of 400 ms, and its end is known some seconds later.
 */
export const RETIRING_MS_MAX = 120_000;
/** Interval of looks at what a retiring process still has in hand, in milliseconds. */
export const RETIRING_LOOK_MS = 50;
/** Interval of a successor's looks at its readiness, in milliseconds. */
export const SUCCESSOR_LOOK_MS = 50;
/** Until a successor that was told to end is killed, in milliseconds. */
export const SUCCESSOR_KILL_MS = 5_000;
/** Interval at which `upgrade` asks for the progress, in milliseconds. */
export const UPGRADE_LOOK_MS = 100;
/** How much longer than the parts of an upgrade `upgrade` waits, in milliseconds. */
export const UPGRADE_SPARE_MS = 15_000;
/** Longest wait for one response of `/readyz`, in milliseconds. */
export const READY_PROBE_MS_MAX = 2_000;
/** Interval between two polls of `ready`, in milliseconds. */
export const READY_POLL_MS = 200;
/** Longest wait of `send` for its response, in milliseconds. */
export const SEND_RESPONSE_MS_MAX = 15_000;
/**
 * How long `send --wait` asks again for a missing receipt, in milliseconds: in an upgrade it may
 * come from the old process later than the successor waits for it.
 */
export const SEND_RECEIPT_MS_MAX = 2_000;
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
/** How long the holder of a public key may take to sign `keys create`'s text, in milliseconds. */
export const CHALLENGE_MS_MAX = 900_000;
