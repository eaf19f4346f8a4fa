/**
 * What the states of a receipt are called, and how good they are.
 */

import { el } from "./dom.js";

/** @type {Record<string, readonly [name: string, kind: string]>} */
const STATES = {
  accepted: ["Accepted", ""],
  sent: ["Sent", ""],
  acknowledged: ["With a leader", ""],
  failed: ["No copy arrived", "bad"],
  processed: ["In a block", "good"],
  landed: ["Landed", "good"],
  expired: ["Expired", "bad"],
  dropped: ["Given up", "bad"],
};

/** What a list may be narrowed to: value for the page's address, name, states for the API. */
export const FILTERS = /** @type {const} */ ([
  ["all", "All", ""],
  ["in-flight", "In flight", "accepted,sent,acknowledged,failed,processed"],
  ["landed", "Landed", "landed"],
  ["not-landed", "Not landed", "expired,dropped"],
]);

/**
 * A transaction that a block holds may have failed there, which costs its fee and does nothing.
 * @param {{state: string, landing: {error: unknown}}} receipt
 */
export function stateBadge({ state, landing }) {
  const [name, kind] = STATES[state] ?? [state, ""];
  const failed = landing.error !== null && landing.error !== undefined;
  if (failed) return el("span", { class: "badge bad" }, `${name}, failed there`);
  return el("span", { class: `badge ${kind}` }, name);
}
