/**
 * The buckets of the two usage histograms, as edges submit and the database stores them. The schema
 * fixes their number, so changing them requires a migration.
 */

import { NS_PER_US } from "../../core/clock.ts";

/** Upper bounds in nanoseconds of the receipt-to-wire buckets; one more takes the rest. */
export const USAGE_WIRE_BOUNDS_NS: readonly number[] = [10, 100, 1_000, 10_000, 100_000]
  .flatMap((decade) => [1, 1.5, 2, 3, 5, 7].map((step) => decade * step * NS_PER_US))
  .concat(1_000_000 * NS_PER_US);

/** Upper bounds of the buckets of slots from receipt to landing; one more takes the rest. */
export const USAGE_SLOT_BOUNDS: readonly number[] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 31, 63, 150,
];
