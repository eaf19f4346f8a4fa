/** Fixed limits of `cluster`; `core/limits.ts` holds those that several parts share. */

/** Maximum size of an RPC response. A leader schedule has 3 MB on mainnet; 2026-11. */
export const RPC_RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum pause that a node can request. */
export const RETRY_AFTER_MS_MAX = 30_000;
/** Minimum time between two reads of the nodes' addresses, however many leaders are unreachable. */
export const CONTACTS_GAP_MS = 10_000;
/**
 * For this long after it accepted a list of addresses the watcher refuses one with less than half
 * as many: a node that has just started learns the others from gossip within minutes.
 */
export const CONTACTS_SHORT_MS_MAX = 300_000;
/** Maximum size of a WebSocket message; one about a slot has a few hundred bytes. */
export const WEBSOCKET_MESSAGE_BYTES_MAX = 64 * 1024;
/**
 * Minimum time per block for a height to be accepted immediately: a quarter of the 200 ms to which
 * SIMD-0525 shortens slots, for sources that report several at a time; and the tolerance in blocks.
 */
export const HEIGHT_BLOCK_MS_MIN = 50;
export const HEIGHT_SLACK_BLOCKS = 32;
/** Blocks by which a node may lag behind another of the same cluster. */
export const HEIGHT_BACK_MAX = 48;
/** Maximum distance of the first two heights: less than a blockhash's lifetime. */
export const HEIGHT_FIRST_BLOCKS = 140;
/**
 * How long implausible heights must continue before they are accepted, in milliseconds: for higher
 * ones, and for lower ones, which a restarted node also reports for minutes while catching up.
 */
export const HEIGHT_REANCHOR_UP_MS = 10_000;
export const HEIGHT_REANCHOR_DOWN_MS = 60_000;
/**
 * The accepted pace of such heights: a node that catches up is faster, and one that stalls proves
 * nothing.
 */
export const HEIGHT_PACE_MS_MIN = 200;
export const HEIGHT_PACE_MS_MAX = 2_000;
/** Blockhashes kept. Agave's queue holds 300 (`MAX_RECENT_BLOCKHASHES`, 2026-11). */
export const BLOCKHASHES_KEPT = 512;
/** Maximum number of slots whose blocks, reported over gRPC, await confirmation. */
export const GEYSER_BLOCKS_MAX = 256;
/** Blocks kept of one slot, the newest: a node replays a slot twice if its parent changed. */
export const GEYSER_BANKS_PER_SLOT_MAX = 2;
/** Maximum size of a gRPC message: a block's rewards come with its height, 2026-11. */
export const GEYSER_MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Slots by which a node may lag behind another before its transaction count starts a new range;
 * more means that the cluster uses slot numbers again.
 */
export const QUIET_BACK_SLOTS_MAX = 64;
/** Blocks read per probe in search of landed signatures, and signatures queried per probe. */
export const STATUS_PROBE_BLOCKS_MAX = 8;
export const STATUS_PROBE_SIGNATURES = 4;
/**
 * Messages about slots, landings and blockhashes that the main thread has not read, above which
 * more are dropped: it reads as many in a turn of its event loop.
 */
export const UPDATES_UNREAD_MAX = 64;
/** A slot this far below the highest of its source shows that the source went back. */
export const SLOT_BACK_DISTANCE = 4;
/**
 * New slots of one source, and the time, without a higher confirmed slot until the node is asked
 * whether the confirmation stands still; and the minimum time between two such requests. Eight
 * slots are two windows, which leaders may skip. As many slots must the node have processed beyond
 * the confirmed one; usually it is ahead by one to three.
 */
export const CONFIRMATION_STALL_SLOTS = 8;
export const CONFIRMATION_STALL_MS = 1_000;
export const CONFIRMATION_CHECK_MS = 400;
/** A confirmed slot this far below the highest is of a node that lags; a lower one is believed. */
export const CONFIRMATION_BACK_SLOTS = 128;
/** Time between two requests for the cluster's consensus; the minimum for an early one. */
export const CONSENSUS_POLL_MS = 60_000;
export const CONSENSUS_GAP_MS = 5_000;
/**
 * Slots by which the finalized slot is below the confirmed one at most with Alpenglow, by what two
 * nodes behind one address may differ (with Tower BFT it is 31 at least: `solana-vote`,
 * `MAX_LOCKOUT_HISTORY`, 2026-11); polls in a row that must find so; and the time to the second.
 */
export const CONSENSUS_CLOSE_SLOTS = 15;
export const CONSENSUS_CLOSE_POLLS = 2;
export const CONSENSUS_AGAIN_MS = 20_000;
/** Landings in one message to the main thread. */
export const LANDINGS_PER_MESSAGE_MAX = 64;
/** Leaders in one schedule, above which it is rejected. Mainnet has about 1,000; 2026-11. */
export const SCHEDULE_LEADERS_MAX = 16_384;
/** Characters of a transaction's error; a longer one is replaced. Receipts keep no longer one. */
export const STATUS_ERROR_CHARS_MAX = 1_024;
/** Characters of a text in the log, and of the reason for a failed request. */
export const REASON_CHARS_MAX = 512;
/** Requests that wait for the cluster thread; landing makes five at a time. */
export const REQUESTS_PENDING_MAX = 16;
/** The delay before a cluster thread that died is replaced; doubled each time up to the maximum. */
export const THREAD_RESTART_MS_MIN = 100;
export const THREAD_RESTART_MS_MAX = 30_000;
/** Lifetime of a cluster thread after which its earlier deaths are forgotten. */
export const THREAD_SETTLED_MS = 60_000;
/** Maximum wait for the cluster thread to start; to end by itself; and to be ended. */
export const THREAD_START_MS_MAX = 15_000;
export const THREAD_STOP_MS_MAX = 1_000;
export const THREAD_KILL_MS_MAX = 2_000;
/**
 * Maximum heap of the cluster thread, in megabytes. A leader schedule needs 30; a response that
 * needs more ends the thread, not the process.
 */
export const THREAD_HEAP_MB_MAX = 1_024;
