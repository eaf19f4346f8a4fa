/**
 * Names and severities of receipt states.
 */

import { el } from "./dom.js";

/** @type {Record<string, readonly [name: string, kind: string]>} */
const STATES = {
  accepted: ["Accepted", ""],
  sent: ["Sent", ""],
  acknowledged: ["With a leader", ""],
  failed: ["No delivery arrived", "bad"],
  processed: ["In a block", "good"],
  landed: ["Landed", "good"],
  expired: ["Expired", "bad"],
  dropped: ["Given up", "bad"],
};

/** Filters of a list: value in the page's URL, name, states for the API. */
export const FILTERS = /** @type {const} */ ([
  ["all", "All", ""],
  ["in-flight", "In flight", "accepted,sent,acknowledged,failed,processed"],
  ["landed", "Landed", "landed"],
  ["not-landed", "Not landed", "expired,dropped"],
]);

/**
 * A transaction in a block may have failed, which costs its fee and has no other effect.
 * @param {{state: string, landing: {error: unknown}}} receipt
 */
export function stateBadge({ state, landing }) {
  const [name, kind] = STATES[state] ?? [state, ""];
  const failed = landing.error !== null && landing.error !== undefined;
  if (failed) return el("span", { class: "badge bad" }, `${name}, failed there`);
  return el("span", { class: `badge ${kind}` }, name);
}
