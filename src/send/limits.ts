/** Fixed bounds of `send`; `core/limits.ts` holds those that several parts share. */

/**
 * Attempts at one leader in the time in which it grants as many. Agave
 * `connection_rate_limiter.rs`: eight a minute for each address, 4.3, 2026-11.
 */
export const LEADER_ATTEMPTS_MAX = 8;
/** Leaders whose record is kept; mainnet has about a thousand. */
export const LEADER_STATS_MAX = 4096;
/** Addresses whose pacing is remembered after they left the plan. */
export const LEADERS_REMEMBERED_MAX = 1024;
/** Copies of one connection whose acknowledgement is awaited. */
export const DELIVERIES_IN_FLIGHT_MAX = 1024;
/**
 * Copies in flight on a connection from which on it takes no resends: half of what Agave grants an
 * unstaked one (`swqos.rs`, 4.3, 2026-11), so that first sends find credit.
 */
export const RESENDS_IN_FLIGHT_MAX = 64;
/** Bytes that may wait in one UDP socket's queue before datagrams are dropped. */
export const SOCKET_QUEUE_BYTES_MAX = 1024 * 1024;
/** Asked of the kernel for each UDP socket, in bytes; it may grant less (`doctor` tells). */
export const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/**
 * What a leader may say on one connection of the portable engine, in bytes, beyond half of what it
 * is sent: one that lives its 15 minutes says a tenth of that. The binding keeps some of it for as
 * long as the connection lives.
 */
export const LEADER_SAYS_BYTES_MAX = 1024 * 1024;
/** UDP payload of the QUIC handshake's datagrams. RFC 9000 section 14.1, 2026-11. */
export const INITIAL_DATAGRAM_BYTES = 1200;
/** Copies of one leader that the native engine tracks until they are acknowledged. */
export const NATIVE_DELIVERIES_IN_FLIGHT_MAX = 4096;
/**
 * Copies of one leader that the native engine has and that are not on the wire yet; more only where
 * the leader takes them in a moment (`TARGET_BACKLOG_MS`).
 */
export const NATIVE_DELIVERIES_QUEUED_MAX = 32;
/** Records that the native engine keeps for JavaScript; above it the oldest is lost and counted. */
export const NATIVE_RECORDS_MAX = 65_536;
/** Records taken from the native engine in one call. */
export const NATIVE_EVENTS_PER_DRAIN = 512;
/** Cells for the stream numbers of connections: twice as many as the native engine may have. */
export const TARGET_CELLS_MAX = 8192;
/** Copies that may wait in the engine for one leader while other threads send to it. */
export const TARGET_BACKLOG_MAX = 8;
/** And for one that takes more than that in so long a time: as many as it takes meanwhile. */
export const TARGET_BACKLOG_MS = 20;
/**
 * So long at least fronts send nothing to a leader that kept copies waiting: as long as the word of
 * a front may take (RECORD_DELAY_MS_MAX), in which such a leader then makes two versions at most.
 */
export const TARGET_EXCLUDED_MS_MIN = 300;
/**
 * Versions of the routes whose copies can be adopted. In RECORD_DELAY_MS_MAX the 16 leaders that fronts
 * may send to make 32, and as many are left for new plans and connections.
 */
export const TARGET_VERSIONS_KEPT = 64;
/** The engine's number of another thread's transaction is above this; the sender's are below. */
export const INGRESS_TX_MIN = 2 ** 40;
/** Copies with news that came before they were adopted; a power of two. */
export const EARLY_OUTCOMES_MAX = 8192;
/** How long a connection that takes no more is kept for copies that nobody here knows of yet. */
export const RECORD_DELAY_MS_MAX = 300;
/** News of copies that is taken before a front that waits for the processor has its turn. */
export const ENGINE_EVENTS_PER_SLICE = 32;
