/**
 * Receipt states, by their names in responses. The first four follow from the deliveries, the next
 * is provisional, and the last three are final.
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
