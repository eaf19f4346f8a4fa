/**
 * The states of a receipt, by their names in answers. The first four are what its copies say, the
 * next is provisional, and the last three are ends.
 */

export const RECEIPT_STATES = [
  "accepted",
  "sent",
  "acknowledged",
  "failed",
  "processed",
  "landed",
  "expired",
  "dropped",
] as const;

export type ReceiptState = (typeof RECEIPT_STATES)[number];
