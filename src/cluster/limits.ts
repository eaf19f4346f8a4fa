/** Fixed bounds of `cluster`; `core/limits.ts` holds those that several parts share. */

/** Largest answer of the RPC node that is read. A leader schedule has 3 MB on mainnet; 2026-11. */
export const RPC_RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** The longest that a node is left alone because it asks for that. */
export const RETRY_AFTER_MS_MAX = 30_000;
/** The nodes' addresses are read at most once in this time, whoever is missed meanwhile. */
export const CONTACTS_GAP_MS = 10_000;
/** Largest message of a node's WebSocket that is read; one on a slot has a few hundred bytes. */
export const WEBSOCKET_MESSAGE_BYTES_MAX = 64 * 1024;
/** News of a node's WebSocket taken in one turn of the event loop; a slot makes three. */
export const SLOT_NOTIFICATIONS_PER_SLICE = 64;
/**
 * Shortest time of a block for which a height is believed at once: a quarter of the 200 ms to which
 * SIMD-0525 shortens slots, for who tells of several at a time; and blocks beyond that.
 */
export const HEIGHT_BLOCK_MS_MIN = 50;
export const HEIGHT_SLACK_BLOCKS = 32;
/** Blocks by which a node may lag behind another and still speak of the same chain. */
export const HEIGHT_BACK_MAX = 48;
/** The first two heights may be so far apart: less than a blockhash lives. */
export const HEIGHT_FIRST_BLOCKS = 140;
/**
 * How long heights that do not fit must go on before they are believed, in milliseconds: higher
 * ones, and lower ones, as also a node tells for minutes that was restarted and catches up.
 */
export const HEIGHT_REANCHOR_UP_MS = 10_000;
export const HEIGHT_REANCHOR_DOWN_MS = 60_000;
/** And at what pace: who catches up is faster, who stands still proves nothing. */
export const HEIGHT_PACE_MS_MIN = 200;
export const HEIGHT_PACE_MS_MAX = 2_000;
/** Blockhashes whose age is known. Agave's queue holds 300 (`MAX_RECENT_BLOCKHASHES`, 2026-11). */
export const BLOCKHASHES_KEPT = 512;
/** Blocks told by gRPC whose confirmation is awaited. */
export const GEYSER_BLOCKS_MAX = 256;
/** Largest gRPC message that is read: a block's rewards come with its height, 2026-11. */
export const GEYSER_MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Blocks that are asked for in search of signatures that landed, and signatures asked for then. */
export const STATUS_PROBE_BLOCKS_MAX = 4;
export const STATUS_PROBE_SIGNATURES = 4;
