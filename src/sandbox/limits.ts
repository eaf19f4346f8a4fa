/** Fixed bounds of `sandbox`; `core/limits.ts` holds the bounds that several parts share. */

/** Connections from one address. Agave `streamer/src/quic.rs`, 4.3, 2026-11. */
export const LEADER_CONNECTIONS_PER_ADDRESS_MAX = 8;
/** Connections of one simulated leader; it ignores new ones above that. */
export const LEADER_CONNECTIONS_MAX = 256;
/** Open streams per connection. Agave `swqos.rs`, unstaked, 4.3, 2026-11. */
export const LEADER_STREAMS_MAX = 128;
/** Clients of a fault proxy; it ignores further ones. */
export const FAULT_PROXY_CLIENTS_MAX = 64;
/** Datagrams in transit in a fault proxy; further ones are lost. */
export const FAULT_PROXY_HELD_MAX = 8_192;
/** Transactions that simulated leaders hold for their next window. */
export const SANDBOX_HELD_MAX = 10_000;
/** Landed transactions whose status the simulated cluster keeps. */
export const SANDBOX_STATUSES_MAX = 100_000;
/** Largest request to the simulated RPC, in bytes. Agave `MAX_REQUEST_BODY_SIZE`, 2026-11. */
export const SANDBOX_RPC_BODY_BYTES_MAX = 50 * 1024;
/** Subscriptions per WebSocket of the simulated cluster. */
export const SANDBOX_SUBSCRIPTIONS_MAX = 4096;
/** Bytes queued for a slow WebSocket before it is closed. */
export const SANDBOX_SOCKET_BYTES_MAX = 4 * 1024 * 1024;
/** Landings that the sandbox prints on its terminal. */
export const SANDBOX_LANDINGS_SHOWN_MAX = 100;
/** Connections that an embedded Postgres accepts. */
export const POSTGRES_CONNECTIONS_MAX = 100;
/**
 * Longest wait until Postgres accepts connections, including recovery after a crash, in
 * milliseconds.
 */
export const POSTGRES_START_MS_MAX = 60_000;
/** Between two looks whether a server has started or ended. */
export const POSTGRES_POLL_MS = 10;
/** Folders of killed sandboxes that one start removes. */
export const SANDBOX_LEFTOVERS_MAX = 16;
/** Start attempts of Postgres: a port may be taken, or processes of a killed server may remain. */
export const POSTGRES_START_ATTEMPTS_MAX = 5;
/** Longest wait between two attempts to restart Postgres, in milliseconds. */
export const POSTGRES_RESTART_MS_MAX = 2_000;
/** Longest wait for Postgres to stop, in milliseconds. */
export const POSTGRES_STOP_MS_MAX = 10_000;
/** Size of the Postgres log above which the next start begins a new one, in bytes. */
export const POSTGRES_LOG_BYTES_MAX = 10 * 1024 * 1024;
/**
 * Entries of the sandbox's identity provider (sessions, codes, grants); the oldest is evicted
 * first.
 */
export const PROVIDER_ENTRIES_MAX = 2_000;
