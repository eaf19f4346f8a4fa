/**
 * A receipt: the outcome of the transaction in a sentence, its stages and deliveries as a drawing,
 * and the same data as tables.
 */

import { copyButton } from "../lib/copy.js";
import { el } from "../lib/dom.js";
import { count, ends, micros, millis, NONE, plural, sol } from "../lib/format.js";
import { stateBadge } from "../lib/receipt-states.js";
import { agoAndFull } from "../lib/times.js";
import { fact } from "./page-header.js";
import { errorText } from "./states.js";
import { table } from "./table.js";
import { timeline } from "./timeline.js";

/**
 * @param {string} edge the region that took it
 * @param {any} receipt
 * @param {string | null} explorerUrl with {signature} in it
 * @param {AbortSignal} signal of the page
 */
export function receiptView(edge, receipt, explorerUrl, signal) {
  const { signature, landing } = receipt;
  const explorer = explorerUrl?.replace("{signature}", signature);
  return el(
    "section",
    { class: "sheet", "aria-label": `Receipt of ${edge}` },
    el(
      "div",
      { class: "sheet-head" },
      el(
        "div",
        { class: "receipt-head" },
        el("h2", {}, ends(signature, 10, 10)),
        stateBadge(receipt),
      ),
      copyButton("Copy signature", () => signature, { label: "Copy signature" }),
      explorer &&
        el(
          "a",
          { class: "btn", href: explorer, target: "_blank", rel: "noopener noreferrer" },
          "Explorer",
          el("span", { class: "unseen" }, " (opens in a new tab)"),
        ),
    ),
    el("p", {}, story(receipt)),
    landing.error !== null &&
      el("p", { class: "note bad" }, `The network's error: ${JSON.stringify(landing.error)}`),
    timeline(receipt, signal),
    facts(edge, receipt),
    leaders(receipt),
  );
}

/** The outcome, in a sentence or two. @param {any} receipt */
function story({ landing, timings, leaders, received_slot }) {
  const acked = leaders.filter((/** @type {any} */ delivery) => delivery.state === "acked").length;
  const sent =
    timings.first_sent_us === null
      ? "No delivery of it was sent."
      : `On the wire after ${micros(timings.first_sent_us)}; ` +
        `${acked} of ${plural(leaders.length, "delivery", "deliveries")} acknowledged.`;
  if (landing.slot === null) return `${errorText(landing.message)} ${sent}`;
  const delta = landing.slots;
  const where =
    delta === null
      ? ""
      : landing.slot < received_slot
        ? `, before it came here (${received_slot})`
        : delta === 0
          ? ", the one in progress when it came"
          : `, ${plural(delta, "slot")} after the one in progress when it came (${received_slot})`;
  const verb = landing.state === "landed" ? "Landed" : "Seen";
  return `${verb} in slot ${landing.slot}${where}. ${sent}`;
}

/** @param {string} edge @param {any} receipt */
function facts(edge, receipt) {
  const { timings, landing, priority_lamports: priority } = receipt;
  const rows = [
    ["Region", edge],
    ["Received", agoAndFull(receipt.received_at)],
    ["Slot then", count(receipt.received_slot)],
    ["Tip", [sol(receipt.tip_lamports), sub(`${count(receipt.tip_lamports)} lamports`)]],
    ["Priority fee", [sol(receipt.priority_fee_lamports)]],
    ["Rank", priority === undefined ? "—" : [sol(priority), sub("offer × landed share")]],
    ["Version", String(receipt.version)],
    ["Submitted", receipt.submissions === 1 ? "once" : `${receipt.submissions} times`],
    ["Decoded", micros(timings.decoded_us)],
    ["On the wire", micros(timings.first_sent_us)],
    ["First acknowledged", micros(timings.first_acked_us)],
    ["End known", micros(landing.known_us)],
  ];
  return el(
    "details",
    {},
    el("summary", {}, "All that is known"),
    el(
      "dl",
      { class: "facts" },
      rows.map(([name, value]) => fact(String(name), .../** @type {any[]} */ ([value].flat()))),
    ),
  );
}

/** @param {string} text */
function sub(text) {
  return el("span", { class: "sub" }, text);
}

/** @type {Record<string, string>} */
const DELIVERIES = {
  sent: "On the way",
  acked: "Acknowledged",
  failed: "Failed",
  dropped: "Not sent",
};

/** @param {any} receipt */
function leaders({ leaders: deliveries, leaders_omitted: more }) {
  if (deliveries.length === 0) return null;
  const columns = [
    {
      title: "Leader",
      cell: (/** @type {any} */ delivery) => [
        el("code", { title: delivery.identity }, ends(delivery.identity, 5, 5)),
        sub(delivery.address),
      ],
    },
    { title: "Slot", number: true, cell: (/** @type {any} */ delivery) => count(delivery.slot) },
    {
      title: "Copy",
      cell: (/** @type {any} */ delivery) => [
        DELIVERIES[delivery.state] ?? delivery.state,
        delivery.reason !== null && el("code", { class: "sub" }, delivery.reason),
        delivery.resend > 0 && sub(`resend ${delivery.resend}`),
      ],
    },
    {
      title: "Sent",
      number: true,
      cell: (/** @type {any} */ delivery) => micros(delivery.sent_us),
    },
    {
      title: "Acknowledged",
      number: true,
      cell: (/** @type {any} */ delivery) => micros(delivery.acked_us),
    },
    {
      title: "Round trip",
      number: true,
      cell: (/** @type {any} */ delivery) => micros(delivery.rtt_us),
    },
    {
      title: "Connection",
      cell: (/** @type {any} */ delivery) => [
        delivery.connection ?? NONE,
        delivery.connection_age_ms !== null && sub(`for ${millis(delivery.connection_age_ms)}`),
      ],
    },
  ];
  return el(
    "details",
    {},
    el("summary", {}, `The ${plural(deliveries.length, "delivery", "deliveries")} as a table`),
    table("Copies of the transaction", columns, deliveries),
    more > 0 &&
      el(
        "p",
        { class: "small soft" },
        `${plural(more, "more delivery", "more deliveries")} not kept.`,
      ),
  );
}
