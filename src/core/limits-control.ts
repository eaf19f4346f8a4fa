/**
 * The fixed bounds of the control process and of the sandbox's identity provider. As in
 * `limits.ts`, what an operator may change is in `config/` instead.
 */

// control

/** Largest body that the dashboard's API takes, in bytes. */
export const CONTROL_BODY_BYTES_MAX = 16 * 1024;
/** How long a request to the control process may take to arrive, in milliseconds. */
export const CONTROL_REQUEST_TIMEOUT_MS = 10_000;
/** Connections to the control process at a time. */
export const CONTROL_CONNECTIONS_MAX = 4096;
/** Headers of a request to the control process, in bytes. */
export const CONTROL_HEADERS_BYTES_MAX = 16 * 1024;
/** Callers whose tries are remembered; above it the ones heard of longest ago are forgotten. */
export const CONTROL_TRIES_KEPT_MAX = 50_000;
/** Longest wait for one answer of the identity provider, in seconds. */
export const PROVIDER_ANSWER_S_MAX = 5;
/** The waits between two tries to discover the provider: the first, and the longest. */
export const PROVIDER_RETRY_MS_MIN = 500;
export const PROVIDER_RETRY_MS_MAX = 60_000;
/** Longest text of a person's name or address that is kept of a login, in characters. */
export const PERSON_TEXT_CHARS_MAX = 256;
/** Longest path that a login returns to, in characters, as it is kept; the schema has it too. */
export const RETURN_PATH_CHARS_MAX = 2048;
/** Longest wait for one edge's answer to the control process, in milliseconds. */
export const EDGE_ANSWER_MS_MAX = 2_000;
/** Largest answer of an edge that is read, in bytes. */
export const EDGE_ANSWER_BYTES_MAX = 256 * 1024;
/** Edges that are asked at a time for one request. */
export const EDGES_ASKED_MAX = 16;
/** Live streams of one account, and of the process. */
export const LIVE_STREAMS_PER_ACCOUNT_MAX = 4;
export const LIVE_STREAMS_MAX = 1024;
/** How often a live stream looks for something new, in milliseconds. */
export const LIVE_PERIOD_MS = 2_000;
/** After how much silence a live stream sends a comment, in milliseconds. */
export const LIVE_SILENCE_MS_MAX = 15_000;
/** How often the store lets go of what is past its time, in milliseconds. */
export const CONTROL_PRUNE_MS = 3_600_000;
/** How often the database is asked whether it is there, for `/readyz`, in milliseconds. */
export const CONTROL_CHECK_MS = 2_000;
/** How long the cookie lives that binds a login under way to its browser, in milliseconds. */
export const LOGIN_COOKIE_MS_MAX = 600_000;

// sandbox/provider

/** Entries of the sandbox's identity provider: sessions, codes, grants; the oldest goes first. */
export const PROVIDER_ENTRIES_MAX = 2_000;
