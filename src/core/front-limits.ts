/** The fixed bounds of fronts, and of what the main thread and they share; see limits.ts. */

// send/shared-routes.ts

/** Leaders that another thread sends to: as many as the engine takes copies in one call. */
export const ROUTES_SHARED_MAX = 16;
/** Cells for the stream numbers of connections: twice as many as the native engine may have. */
export const ROUTE_CELLS_MAX = 8192;
/** Copies that may wait in the engine for one leader while other threads send to it. */
export const ROUTE_WAITING_MAX = 8;
/** And for one that takes more than that in so long a time: as many as it takes meanwhile. */
export const ROUTE_WAITING_MS = 20;
/**
 * So long at least fronts send nothing to a leader that kept copies waiting: as long as the word of
 * a front may take (ADOPTION_MS_MAX), in which such a leader then makes two versions at most.
 */
export const ROUTE_OUT_MS_MIN = 300;
/**
 * Versions of the routes whose copies can be adopted. In ADOPTION_MS_MAX the 16 leaders that fronts
 * may send to make 32, and as many are left for new plans and connections.
 */
export const ROUTE_VERSIONS_KEPT = 64;
/** The engine's number of another thread's transaction is above this; the sender's are below. */
export const FRONT_TX_MIN = 2 ** 40;
/** Copies with news that came before they were adopted; a power of two. */
export const NEWS_EARLY_MAX = 8192;
/** How long a connection that takes no more is kept for copies that nobody here knows of yet. */
export const ADOPTION_MS_MAX = 300;
/** News of copies that is taken before a front that waits for the processor has its turn. */
export const NEWS_A_TURN = 32;

// edge-early.ts

/** Repetitions that came before what they repeat: 0.3 MB. */
export const EARLY_SHARES_MAX = 1024;

// front/

/** Threads that take requests. */
export const FRONTS_MAX = 16;
/** Their connections to the server behind them, all together. */
export const FRONT_RELAYS_MAX = 8192;
/** Records of one front that the main thread has not read: 4.4 MB; a power of two. */
export const FRONT_RECORDS = 1_024;
/** Records taken into the books before a front that waits for the processor has its turn. */
export const FRONT_RECORDS_A_TURN = 8;
/** From so many unread records on of any front they have to wait, lest its ring fill up. */
export const FRONT_RECORDS_BEHIND = 192;
/** The longest wait for fronts to finish what is in hand when they are stopped. */
export const FRONTS_STOP_MS_MAX = 30_000;
/** The longest wait for a front's thread that was told to end at once. */
export const FRONT_END_MS_MAX = 1_000;
