/** Limits of `config`; limits that several parts share are in `core/limits.ts`. */

/** Maximum configuration file in bytes. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** Maximum local addresses to send from, one socket each. */
export const SEND_ADDRESSES_MAX = 16;
/** Maximum ingress threads. */
export const INGRESS_THREADS_MAX = 16;
