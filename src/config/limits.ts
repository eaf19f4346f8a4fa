/** Fixed bounds of `config`; `core/limits.ts` holds those that several parts share. */

/** Largest configuration file, in bytes. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** Local addresses to send from: as many sockets. */
export const SEND_ADDRESSES_MAX = 16;
/** Threads that take requests. */
export const INGRESS_THREADS_MAX = 16;
