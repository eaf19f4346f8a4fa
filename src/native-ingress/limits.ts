/** Fixed bounds of `native-ingress`; `core/limits.ts` holds the bounds that several parts share. */

/** The longest wait for ingress threads to finish pending requests when they are stopped. */
export const INGRESS_THREADS_STOP_MS_MAX = 30_000;
/** The maximum wait for an ingress thread after the command to exit immediately. */
export const INGRESS_THREAD_EXIT_MS_MAX = 1_000;
/** Bytes of a batch of keys for the engine; a key has at most 50 kB, and usually 0.1. */
export const KEY_BATCH_BYTES = 131_072;
/** Charged limits that the main thread takes over at a time. */
export const CHARGED_LIMITS_PER_CALL = 4_096;
/** Room for their names; the engine needs 64 KiB for one, which usually has 40 bytes. */
export const CHARGED_NAMES_BYTES = 262_144;
/**
 * How long a process that was replaced may have sockets on the QUIC port, from when its successor
 * listens there; PREDECESSOR_NS_MAX in native/src/quic_server/limits.rs.
 */
export const QUIC_PREDECESSOR_MS_MAX = 10_000;
