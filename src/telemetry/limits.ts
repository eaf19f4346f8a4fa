/** Fixed bounds of `telemetry`; `core/limits.ts` holds those that several parts share. */

/** Levels of nested objects that the log follows. */
export const LOG_DEPTH_MAX = 6;
/** Entries of one object or array that the log shows. */
export const LOG_ENTRIES_MAX = 64;
/** Characters of one text that the log shows. */
export const LOG_TEXT_CHARS_MAX = 8192;
/** How long a request to the admin listener may take to arrive, in milliseconds. */
export const ADMIN_REQUEST_TIMEOUT_MS = 10_000;
/** Connections to the admin listener at a time. */
export const ADMIN_CONNECTIONS_MAX = 64;
/** Headers of a request to the admin listener, in bytes. */
export const ADMIN_HEADERS_BYTES_MAX = 8192;
