/** Fixed limits of `control`; `core/limits.ts` has those that several folders share. */

/** Timeout of one statement of a migration, in milliseconds. */
export const MIGRATION_MS_MAX = 300_000;
/** Maximum number of key-encryption keys. */
export const VAULT_KEYS_MAX = 16;
/** Live keys of an account, unless its plan grants another number. */
export const KEYS_PER_ACCOUNT_MAX = 20;
/** Keys of an account that a list shows, ended ones included; more if more of them are live. */
export const KEY_RECORDS_SHOWN_MAX = 500;
/** Networks that one key may be restricted to. */
export const KEY_CIDRS_MAX = 32;
/** How far ahead a key's expiry may lie, in milliseconds: ten years. */
export const KEY_LIFE_MS_MAX = 10 * 366 * 86_400_000;
/** Longest overlap when a key is rotated, in milliseconds: 30 days. */
export const KEY_OVERLAP_MS_MAX = 30 * 86_400_000;
/** Lifetime of a challenge that the holder of a public key signs, in milliseconds. */
export const KEY_CHALLENGE_MS_MAX = 900_000;
/** Challenges of an account that wait for a signature; above it the oldest are dropped. */
export const KEY_CHALLENGES_PER_ACCOUNT_MAX = 16;
/** Time limit for a login at the provider, in milliseconds. */
export const LOGIN_ATTEMPT_MS_MAX = 600_000;
/** Pending logins; above it the oldest is dropped. */
export const LOGIN_ATTEMPTS_MAX = 10_000;
/** Sessions of an account; above it the oldest is ended. */
export const SESSIONS_PER_ACCOUNT_MAX = 20;
/** How much the recorded time of a session's last request may lag, in milliseconds. */
export const SESSION_TOUCH_MS = 15_000;
/** Management tokens of an account. */
export const API_TOKENS_PER_ACCOUNT_MAX = 20;
/** How much the recorded time of a token's last use may lag, in milliseconds. */
export const API_TOKEN_TOUCH_MS = 60_000;
/** How long usage is kept by minute and by hour, in milliseconds: 35 and 400 days. */
export const USAGE_MINUTES_KEEP_MS = 35 * 86_400_000;
export const USAGE_HOURS_KEEP_MS = 400 * 86_400_000;
/**
 * How long audit entries are kept, in milliseconds: 400 days; the schema forbids deleting them
 * before 90 days.
 */
export const AUDIT_KEEP_MS = 400 * 86_400_000;
/** How long a change of keys is kept for edges that were disconnected: 7 days. */
export const CHANGES_KEEP_MS = 7 * 86_400_000;
/** Rows that one pruning step deletes, and steps per table in one run. */
export const PRUNE_ROWS_PER_STEP = 5_000;
export const PRUNE_STEPS_MAX = 200;
/** Largest request body of the dashboard's API, in bytes. */
export const CONTROL_BODY_BYTES_MAX = 16 * 1024;
/** Time limit for receiving a request to the control process, in milliseconds. */
export const CONTROL_REQUEST_TIMEOUT_MS = 10_000;
/** How long open requests may take when the control process stops, in milliseconds. */
export const CONTROL_STOP_MS_MAX = 15_000;
/** Concurrent connections to the control process. */
export const CONTROL_CONNECTIONS_MAX = 4096;
/** Size limit for the headers of a request to the control process, in bytes. */
export const CONTROL_HEADERS_BYTES_MAX = 16 * 1024;
/** Callers whose attempts are tracked; above it the least recently used are dropped. */
export const CONTROL_LIMITED_CALLERS_MAX = 50_000;
/** Timeout of one response of the identity provider, in seconds. */
export const PROVIDER_RESPONSE_S_MAX = 5;
/** The delays between two attempts to discover the provider: the first and the longest. */
export const PROVIDER_RETRY_MS_MIN = 500;
export const PROVIDER_RETRY_MS_MAX = 60_000;
/** Longest name or address that is kept of a login, in characters. */
export const PERSON_TEXT_CHARS_MAX = 256;
/**
 * Longest path that a login returns to, in characters, as stored; the schema has the same limit.
 */
export const RETURN_PATH_CHARS_MAX = 2048;
/** Timeout of one edge's response to the control process, in milliseconds. */
export const EDGE_RESPONSE_MS_MAX = 2_000;
/** Largest response of an edge that is read, in bytes. */
export const EDGE_RESPONSE_BYTES_MAX = 256 * 1024;
/** Edges that are queried in parallel for one request. */
export const EDGES_QUERIED_MAX = 16;
/** Requests to one edge at a time, over all users; `control` does not send a further one. */
export const EDGE_REQUESTS_MAX = 64;
/** Event streams of one account, and of the process. */
export const EVENT_STREAMS_PER_ACCOUNT_MAX = 4;
export const EVENT_STREAMS_MAX = 1024;
/** How often an event stream checks for changes, in milliseconds. */
export const EVENT_STREAM_PERIOD_MS = 2_000;
/** After this much silence an event stream sends a comment, in milliseconds. */
export const EVENT_STREAM_SILENCE_MS_MAX = 15_000;
/** How often the store deletes expired rows, in milliseconds. */
export const CONTROL_PRUNE_MS = 3_600_000;
/** How often the database is checked for `/readyz`, in milliseconds. */
export const CONTROL_CHECK_MS = 2_000;
/** Lifetime of the cookie that binds a pending login to its browser, in milliseconds. */
export const LOGIN_COOKIE_MS_MAX = 600_000;
