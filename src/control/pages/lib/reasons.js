/**
 * A text for each reason of the service. The texts match the table of reasons in the README; an
 * unknown reason is shown by its name.
 */

/** @type {Record<string, string>} */
const REFUSED = {
  unauthorized: "The key was missing, unknown or revoked, or its account disabled",
  rate_limited: "The account's rate limit was exceeded",
  length_required: "The request carried Transfer-Encoding",
  too_large: "The body was larger than the limit",
  parse_error: "The body was not JSON, or empty",
  invalid_request: "The body was not a JSON-RPC request",
  method_not_found: "A JSON-RPC method that is not served",
  invalid_params: "Wrong params: count, type or encoding",
  undecodable: "Not one complete transaction that leaders would accept",
  tip_missing: "No transfer of the minimum tip to a tip account",
  signature_invalid: "A signature did not verify",
  no_leader: "No leader could be reached then",
  overloaded: "The edge was overloaded or draining",
  internal: "An internal error; the request may be retried",
};

/** @type {Record<string, string>} */
const ENDED = {
  blockhash_expired: "The blockhash became too old for any leader, and no block holds it",
  never_sent: "It was not put on the wire",
  tracking_ended:
    "Whether it landed is unknown: no block and no expiry was proven while it was tracked",
  table_full: "More transactions were in flight than are tracked",
  shutting_down: "The edge stopped before the end was known",
  unconfirmed: "A block held it, and was not confirmed in the time for which it is tracked",
  status_unknown:
    "Its blockhash became too old, and the node reports no statuses: whether it landed is unknown",
  blockhash_unknown: "The cluster does not know its blockhash, so no leader can include it",
};

/** @param {"refused" | "expired" | "dropped"} kind @param {string} reason */
export function reasonText(kind, reason) {
  const text = (kind === "refused" ? REFUSED : ENDED)[reason] ?? reason;
  const kinds = { refused: "Refused", expired: "Sent, then expired", dropped: "Given up" };
  return `${kinds[kind]}: ${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}
