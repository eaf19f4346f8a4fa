/**
 * Durations in configuration: a number and a unit, `"250ms"`, `"1.5s"`, `"5m"`, `"1h"`. A number
 * without a unit is rejected as ambiguous. Internally a duration is a number of milliseconds.
 */

const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const FORM = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/;

/** Milliseconds, possibly fractional; null when the text is not a duration. */
export function parseDuration(text: string): number | null {
  const match = FORM.exec(text);
  if (match === null) return null;
  const [, amount, unit] = match;
  const factor = MS_PER_UNIT[unit ?? ""];
  if (factor === undefined) return null;
  return Number((Number(amount) * factor).toFixed(3));
}

/** The shortest text that `parseDuration` converts back to the same milliseconds. */
export function formatDuration(ms: number): string {
  const units = Object.entries(MS_PER_UNIT).reverse();
  for (const [unit, factor] of units) {
    if (ms >= factor && ms % factor === 0) return `${ms / factor}${unit}`;
  }
  return ms === 0 ? "0s" : `${ms}ms`;
}
