/** Limits of `receipts`; limits that several parts share are in `core/limits.ts`. */

/** Rejections kept per account for the dashboard, and the number of accounts with any. */
export const REJECTIONS_PER_ACCOUNT_MAX = 64;
export const REJECTIONS_ACCOUNTS_MAX = 2048;
/** Deliveries listed in one receipt; later ones are only counted. */
export const RECEIPT_DELIVERIES_MAX = 64;
/**
 * Delivery capacity per receipt on average; when it is exhausted, the oldest receipts are evicted.
 */
export const RECEIPT_DELIVERIES_MEAN = 4;
/** Accounts that can see one receipt: the first ones that sent the transaction. */
export const RECEIPT_SUBMITTERS_MAX = 4;
/**
 * Minimum number of packets whose outcomes can be matched to a receipt; otherwise the receipt
 * limit.
 */
export const RECEIPT_PACKETS_MIN = 131_072;
/** State changes kept for streams, per receipt of capacity. */
export const RECEIPT_CHANGES_MEAN = 4;
/** Distinct network errors that receipts hold, and the characters of one. */
export const RECEIPT_ERRORS_MAX = 4096;
export const RECEIPT_ERROR_CHARS_MAX = 1024;
/** Receipts evicted per sweep. */
export const RECEIPT_SWEEP_MAX = 4096;
