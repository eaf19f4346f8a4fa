/** Fixed bounds of `control`; `core/limits.ts` holds those that several parts share. */

/** Longest time of one statement of a migration, in milliseconds. */
export const MIGRATION_MS_MAX = 300_000;
/** Key-encryption keys at a time. */
export const VAULT_KEYS_MAX = 16;
/** Keys of an account that are good at a time, unless its plan grants another number. */
export const KEYS_PER_ACCOUNT_MAX = 20;
/** Keys of an account that a list shows, ended ones included. */
export const KEY_RECORDS_SHOWN_MAX = 500;
/** Networks that one key may be used from. */
export const KEY_CIDRS_MAX = 32;
/** How long ahead a key's end may lie, in milliseconds: ten years. */
export const KEY_LIFE_MS_MAX = 10 * 366 * 86_400_000;
/** Longest overlap when a key is rotated, in milliseconds: 30 days. */
export const KEY_OVERLAP_MS_MAX = 30 * 86_400_000;
/** How long a login may take at the provider, in milliseconds. */
export const LOGIN_ATTEMPT_MS_MAX = 600_000;
/** Logins under way at a time; above it the oldest goes. */
export const LOGIN_ATTEMPTS_MAX = 10_000;
/** Sessions of an account; above it the oldest ends. */
export const SESSIONS_PER_ACCOUNT_MAX = 20;
/** How much a session's idle end may lag behind its last request, in milliseconds. */
export const SESSION_TOUCH_MS = 15_000;
/** Management tokens of an account. */
export const API_TOKENS_PER_ACCOUNT_MAX = 20;
/** How much a token's last use may lag behind, in milliseconds. */
export const API_TOKEN_TOUCH_MS = 60_000;
/** How long usage is kept by the minute and by the hour, in milliseconds: 35 and 400 days. */
export const USAGE_MINUTES_KEEP_MS = 35 * 86_400_000;
export const USAGE_HOURS_KEEP_MS = 400 * 86_400_000;
/** How long the audit is kept, in milliseconds: 400 days; the schema lets none go before 90. */
export const AUDIT_KEEP_MS = 400 * 86_400_000;
/** How long a change of keys can be read by edges that were away: 7 days. */
export const CHANGES_KEEP_MS = 7 * 86_400_000;
/** Rows that one step of pruning deletes, and steps for each table in one go. */
export const PRUNE_ROWS_PER_STEP = 5_000;
export const PRUNE_STEPS_MAX = 200;
/** Largest body that the dashboard's API takes, in bytes. */
export const CONTROL_BODY_BYTES_MAX = 16 * 1024;
/** How long a request to the control process may take to arrive, in milliseconds. */
export const CONTROL_REQUEST_TIMEOUT_MS = 10_000;
/** Connections to the control process at a time. */
export const CONTROL_CONNECTIONS_MAX = 4096;
/** Headers of a request to the control process, in bytes. */
export const CONTROL_HEADERS_BYTES_MAX = 16 * 1024;
/** Callers whose tries are remembered; above it the ones heard of longest ago are forgotten. */
export const CONTROL_LIMITED_CALLERS_MAX = 50_000;
/** Longest wait for one answer of the identity provider, in seconds. */
export const PROVIDER_RESPONSE_S_MAX = 5;
/** The waits between two tries to discover the provider: the first, and the longest. */
export const PROVIDER_RETRY_MS_MIN = 500;
export const PROVIDER_RETRY_MS_MAX = 60_000;
/** Longest text of a person's name or address that is kept of a login, in characters. */
export const PERSON_TEXT_CHARS_MAX = 256;
/** Longest path that a login returns to, in characters, as it is kept; the schema has it too. */
export const RETURN_PATH_CHARS_MAX = 2048;
/** Longest wait for one edge's answer to the control process, in milliseconds. */
export const EDGE_RESPONSE_MS_MAX = 2_000;
/** Largest answer of an edge that is read, in bytes. */
export const EDGE_RESPONSE_BYTES_MAX = 256 * 1024;
/** Edges that are asked at a time for one request. */
export const EDGES_QUERIED_MAX = 16;
/** Live streams of one account, and of the process. */
export const EVENT_STREAMS_PER_ACCOUNT_MAX = 4;
export const EVENT_STREAMS_MAX = 1024;
/** How often a live stream looks for something new, in milliseconds. */
export const EVENT_STREAM_PERIOD_MS = 2_000;
/** After how much silence a live stream sends a comment, in milliseconds. */
export const EVENT_STREAM_SILENCE_MS_MAX = 15_000;
/** How often the store lets go of what is past its time, in milliseconds. */
export const CONTROL_PRUNE_MS = 3_600_000;
/** How often the database is asked whether it is there, for `/readyz`, in milliseconds. */
export const CONTROL_CHECK_MS = 2_000;
/** How long the cookie lives that binds a login under way to its browser, in milliseconds. */
export const LOGIN_COOKIE_MS_MAX = 600_000;
