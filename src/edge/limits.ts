/** Fixed bounds of `edge`; `core/limits.ts` holds those that several parts share. */

/** Largest file of certificate authorities, in bytes; all of Mozilla's are 0.2 MB. */
export const AUTHORITIES_BYTES_MAX = 16 * 1024 * 1024;
/** Signers for whom the native engine keeps a table of 64 kB each, for all threads. */
export const NATIVE_KEYS_MAX = 512;
/** Public keys that each thread keeps ready to verify with; about 10 MB when full. */
export const DECODE_KEYS_MAX = 4096;
/** Open files that an edge needs at most besides its clients' connections and worker threads. */
export const EDGE_FILES_MAX = 256;
/** Open files of one worker thread: what its event loop polls with and is woken by. */
export const WORKER_FILES = 4;
/** How long the I/O thread and the workers look for work before they sleep, where they may poll. */
export const BUSY_POLL_US = 1_000;
/** Processors below which polling takes the time of those who have work. */
export const BUSY_POLL_PROCESSORS_MIN = 4;
/** Repetitions that came before what they repeat: 0.3 MB. */
export const EARLY_DUPLICATES_MAX = 1024;
/** Their connections to the server behind them, all together. */
export const UPSTREAM_CONNECTIONS_MAX = 8192;
