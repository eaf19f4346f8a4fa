/**
 * Fixed bounds of `config`. What several parts share is in `core/limits.ts`; what an operator may
 * change is in `config/table.ts`.
 */

/** Largest configuration file, in bytes. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** Local addresses to send from: as many sockets. */
export const SEND_ADDRESSES_MAX = 16;
/** Threads that take requests. */
export const FRONTS_MAX = 16;
