/**
 * Everything that can be wrong with a transaction's bytes, as numbers.
 *
 * A worker thread or the native engine tells a fault as three integers: the fault's index in this
 * table, what was found and what was needed. The sentence is written only where an answer is.
 * Rows are added at the end and never change their place.
 */

import type { Refusal, RefusalReason } from "./errors.ts";
import type { Refused } from "./flow.ts";

interface FaultRow {
  readonly name: string;
  readonly reason: RefusalReason;
  /** What was found and needed, in words. */
  readonly sentence: (found: number, needed: number) => string;
}

const undecodable = (
  name: string,
  sentence: (found: number, needed: number) => string,
): FaultRow => ({
  name,
  reason: "undecodable",
  sentence: (found, needed) => `transaction could not be decoded: ${sentence(found, needed)}`,
});

/** The decoder's vocabulary; `FAULT.x` is the index of the row named x. */
const ROWS = [
  undecodable("empty", () => "the body is empty, one serialized transaction is needed"),
];

export type FaultCode = number;

/** The refusal that a client is told for a verdict. */
export function refusalOf(refused: Refused): Refusal {
  const row = ROWS[refused.fault];
  if (row === undefined) throw new RangeError(`no fault has the code ${refused.fault}`);
  return {
    reason: row.reason,
    sentence: row.sentence(refused.found, refused.needed),
    data: { fault: row.name, found: refused.found, needed: refused.needed },
  };
}
