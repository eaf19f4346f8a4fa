/** Limits of `telemetry`; limits that several parts share are in `core/limits.ts`. */

/** Levels of nested objects that are logged. */
export const LOG_DEPTH_MAX = 6;
/** Entries of one object or array that are logged. */
export const LOG_ENTRIES_MAX = 64;
/** Characters of one text that are logged. */
export const LOG_TEXT_CHARS_MAX = 8192;
/** Timeout of receiving a request to the admin listener, in milliseconds. */
export const ADMIN_REQUEST_TIMEOUT_MS = 10_000;
/** Maximum concurrent connections to the admin listener. */
export const ADMIN_CONNECTIONS_MAX = 64;
/** Maximum headers of a request to the admin listener, in bytes. */
export const ADMIN_HEADERS_BYTES_MAX = 8192;
/** Threads whose processor time is read for a scrape; an edge on 64 processors has about 100. */
export const THREADS_READ_MAX = 256;
