/**
 * Fixed bounds of `send`; `core/limits.ts` holds those that several parts share.
 */

/**
 * Attempts at one leader in the period in which it grants the same number. Agave
 * `connection_rate_limiter.rs`: eight per minute and address, 4.3, 2026-11.
 */
export const LEADER_ATTEMPTS_MAX = 8;
/** Leaders with statistics; mainnet has about a thousand. */
export const LEADER_STATS_MAX = 4096;
/** Addresses whose reconnect backoff is remembered after they left the plan. */
export const LEADERS_REMEMBERED_MAX = 1024;
/** Deliveries of one connection that await acknowledgement. */
export const DELIVERIES_IN_FLIGHT_MAX = 1024;
/**
 * Resends of one leader on the wire: half of what Agave grants an unstaked connection (`swqos.rs`,
 * 4.3, 2026-11), so that a round of them leaves credit for what is sent next.
 */
export const RESENDS_IN_FLIGHT_MAX = 64;
/** Bytes that may be queued in one UDP socket before datagrams are dropped. */
export const SOCKET_QUEUE_BYTES_MAX = 1024 * 1024;
/**
 * Requested from the kernel for each UDP socket, in bytes; it may grant less.
 */
export const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/**
 * Bytes that a leader may send on one connection of the portable engine, besides half of the bytes
 * sent to it: a connection of 15 minutes receives a tenth of that. The binding keeps some of them
 * for as long as the connection lives.
 */
export const LEADER_SAYS_BYTES_MAX = 1024 * 1024;
/** UDP payload of the QUIC handshake's datagrams. RFC 9000 section 14.1, 2026-11. */
export const INITIAL_DATAGRAM_BYTES = 1200;
/**
 * How long after `send.delivery_ttl` a delivery that waits in the engine may be without an end. Its
 * end allows a repetition, and a leader gets a transaction again after 2 s at the earliest.
 */
export const UNREPORTED_WAITING_MS = 2_000;
/**
 * How long one on the wire may be: as long as a connection may be silent before it ends
 * (`idleTimeoutMs`). A delivery that is lost on a connection that is not silent is repeated within
 * a few round trips.
 */
export const UNREPORTED_ON_WIRE_MS = 10_000;
/** Deliveries of one leader that the native engine tracks until they are acknowledged. */
export const NATIVE_DELIVERIES_IN_FLIGHT_MAX = 4096;
/** Units of events read from the native engine per call, 64 bytes each: several submissions. */
export const EVENT_UNITS_PER_DRAIN = 1_024;
/**
 * How long a retiring connection is kept for deliveries without a record on this thread; a record
 * is at most 210 ms late.
 */
export const RETIRING_MS = 300;
/** Each thread that sends has so many numbers for deliveries: `native/src/submit/fan_out.rs`. */
export const DELIVERY_NUMBERS = 2 ** 24;
/**
 * Engine events handled before the thread yields to an ingress thread that needs the processor; a
 * submission counts as four.
 */
export const WORK_PER_SLICE = 32;
export const WORK_OF_SUBMISSION = 4;
/** Unread units of events from which on it does not yield. */
export const UNREAD_UNITS_MAX = 3_072;
