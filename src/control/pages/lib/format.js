/**
 * Formats numbers: with a unit, a sensible precision, and a dash for unknown values.
 */

const whole = new Intl.NumberFormat("en");
const oneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const threeDigits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const shortForm = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const NONE = "–";

/** @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? NONE : whole.format(value);
}

/** Compact form of large numbers, for an axis or a tile. @param {number | null} value */
export function short(value) {
  if (value === null) return NONE;
  return Math.abs(value) < 100_000 ? count(value) : shortForm.format(value);
}

/** A share of 0 to 1, as a percentage. @param {number | null} value */
export function share(value) {
  if (value === null) return NONE;
  const percent = value * 100;
  // Never round 99.97 up to 100: the missing fraction is what matters.
  if (percent > 99 && percent < 100) return `${(Math.floor(percent * 100) / 100).toFixed(2)} %`;
  return `${oneDigit.format(percent)} %`;
}

/** A duration given in microseconds. @param {number | null | undefined} us */
export function micros(us) {
  if (us === null || us === undefined) return NONE;
  if (us < 1000) return `${us < 10 ? oneDigit.format(us) : Math.round(us)} µs`;
  if (us < 1_000_000) return `${digits(us / 1000)} ms`;
  return `${digits(us / 1_000_000)} s`;
}

/** A duration given in milliseconds. @param {number | null} ms */
export function millis(ms) {
  return micros(ms === null ? null : ms * 1000);
}

/** Three significant digits. @param {number} value */
function digits(value) {
  return value < 1000 ? threeDigits.format(value) : whole.format(value);
}

/** @param {number | null} value */
export function slots(value) {
  if (value === null) return NONE;
  return `${count(value)} ${value === 1 ? "slot" : "slots"}`;
}

/** @param {number} value */
export function bytes(value) {
  if (value < 1024) return `${value} B`;
  if (value < 1024 ** 2) return `${oneDigit.format(value / 1024)} KiB`;
  if (value < 1024 ** 3) return `${oneDigit.format(value / 1024 ** 2)} MiB`;
  return `${oneDigit.format(value / 1024 ** 3)} GiB`;
}

/** An amount of lamports in SOL, exact to the lamport. @param {number} lamports */
export function sol(lamports) {
  const digits9 = new Intl.NumberFormat("en", { maximumFractionDigits: 9 });
  return `${digits9.format(lamports / 1e9)} SOL`;
}

/** The beginning and end of a long text such as a signature. @param {string} text */
export function ends(text, head = 6, tail = 6) {
  return text.length <= head + tail + 1 ? text : `${text.slice(0, head)}…${text.slice(-tail)}`;
}

/** The label of a key; a key that an operator made may have none. @param {string} label */
export function labelText(label) {
  return label === "" ? "Without a label" : label;
}

/** `word` or its plural after a count. @param {number} value @param {string} word */
export function plural(value, word, many = `${word}s`) {
  return `${count(value)} ${value === 1 ? word : many}`;
}

/** A list of names: "a, b and c". @param {readonly string[]} names */
export function listOf(names) {
  return new Intl.ListFormat("en").format(names);
}
