/** Fixed bounds of `receipts`; `core/limits.ts` holds those that several parts share. */

/** Refusals of one account that are kept for the dashboard, and accounts of which any are. */
export const REJECTIONS_PER_ACCOUNT_MAX = 64;
export const REJECTIONS_ACCOUNTS_MAX = 2048;
/** Copies that one receipt shows; later ones are counted only. */
export const RECEIPT_DELIVERIES_MAX = 64;
/** Copies that there is room for, for each receipt; when it runs out, the oldest receipts go. */
export const RECEIPT_DELIVERIES_MEAN = 4;
/** Accounts that can see one receipt: the first that sent the transaction. */
export const RECEIPT_SUBMITTERS_MAX = 4;
/** Packets whose outcomes can still find their receipt, at least; else as many as receipts. */
export const RECEIPT_PACKETS_MIN = 131_072;
/** Changes of state that are kept for streams, for each receipt that there is room for. */
export const RECEIPT_CHANGES_MEAN = 4;
/** Different errors of the network that receipts hold, and the characters of one. */
export const RECEIPT_ERRORS_MAX = 4096;
export const RECEIPT_ERROR_CHARS_MAX = 1024;
/** Receipts let go in one round of the sweep. */
export const RECEIPT_SWEEP_MAX = 4096;
