/**
 * The usage of a time range: the totals, three plots, and breakdowns by reason, region and key.
 * Created once and then updated, so that nothing moves under the user.
 */

import { el, fill } from "../lib/dom.js";
import {
  bytes,
  count,
  labelText,
  micros,
  NONE,
  plural,
  share,
  short,
  slots,
} from "../lib/format.js";
import { reasonText } from "../lib/reasons.js";
import { chart } from "./chart.js";
import { sheet } from "./page-header.js";
import { table } from "./table.js";

const DASH = [6, 4];
const NO_HINT = "td_…";
const RANGE_WORDS = { hour: "the last hour", day: "the last day", month: "the last 30 days" };

/** @param {AbortSignal} signal of the page */
export function stats(signal) {
  const tiles = el("dl", { class: "tiles" });
  const sent = chart("Transactions", signal);
  const wire = chart("Receipt to wire", signal);
  const delta = chart("Slot delta", signal);
  const rest = el("div");
  let shown = "";
  const plots = el("div", { class: "grid two" }, wire.figure, delta.figure);
  const element = el("div", {}, tiles, sent.figure, plots, rest);
  return {
    element,
    /** @param {any} usage */
    show(usage) {
      const { totals, series, range } = usage;
      fill(tiles, tilesOf(totals));
      const over = RANGE_WORDS[/** @type {"hour" | "day" | "month"} */ (range)];
      sent.show(series.at, sentLines(series), sentSummary(totals, over));
      wire.show(
        series.at,
        percentiles(series.wire_us_p50, series.wire_us_p99, micros),
        summaryOf(totals.receipt_to_wire_us, micros, over),
      );
      delta.show(
        series.at,
        percentiles(series.slot_delta_p50, series.slot_delta_p99, count),
        summaryOf(totals.slot_delta, slots, over),
      );
      // Unchanged parts stay, with the user's focus and selection.
      const told = JSON.stringify([range, usage.reasons, usage.regions, usage.keys]);
      if (told === shown) return;
      shown = told;
      fill(
        rest,
        reasonsOf(usage.reasons, over),
        regionsOf(usage.regions, over),
        keysOf(usage.keys, over),
      );
    },
  };
}

/** @param {any} totals */
function tilesOf(totals) {
  const ended = totals.landed + totals.expired + totals.dropped;
  return [
    tile(
      "Sent",
      short(totals.accepted),
      `of ${plural(totals.requests, "request")}, ${bytes(totals.bytes)}`,
    ),
    tile("Landed", share(totals.landed_share), `${count(totals.landed)} of ${count(ended)} ended`),
    percentileTile("Slot delta", totals.slot_delta, slots),
    percentileTile("Receipt to wire", totals.receipt_to_wire_us, micros),
    tile("Refused", short(totals.refused), share(part(totals.refused, totals.requests))),
  ];
}

/** @param {number} some @param {number} all */
function part(some, all) {
  return all === 0 ? null : some / all;
}

/** @param {string} name @param {string} value @param {string} text */
function tile(name, value, text) {
  return el(
    "div",
    { class: "tile" },
    el("dt", {}, name),
    el("dd", {}, value),
    el("dd", { class: "sub" }, text),
  );
}

/** @param {string} name @param {any} value @param {(n: number | null) => string} format */
function percentileTile(name, { p50, p99 }, format) {
  return tile(name, format(p50), p50 === null ? "p50" : `p50; p99 is ${format(p99)}`);
}

/** @param {{p50: number | null, p99: number | null}} value @param {(n: number | null) => string} format */
function pair({ p50, p99 }, format) {
  return p50 === null ? NONE : `${format(p50)} / ${format(p99)}`;
}

/** @param {any} series @returns {import("./chart.js").Line[]} */
function sentLines(series) {
  return [
    { label: "Sent", colour: 2, dash: DASH, values: series.accepted, format: short },
    { label: "Landed", colour: 1, values: series.landed, format: short },
    { label: "Refused", colour: 3, dash: [2, 3], values: series.refused, format: short },
  ];
}

/** @returns {import("./chart.js").Line[]} */
function percentiles(
  /** @type {(number | null)[]} */ p50,
  /** @type {(number | null)[]} */ p99,
  /** @type {(value: number | null) => string} */ format,
) {
  return [
    { label: "p50", colour: 1, values: p50, format },
    { label: "p99", colour: 2, dash: DASH, values: p99, format },
  ];
}

/** @param {any} totals @param {string} over */
function sentSummary({ accepted, landed, refused }, over) {
  return `In ${over} ${count(accepted)} sent, ${count(landed)} landed, ${count(refused)} refused.`;
}

/** @param {any} value @param {(n: number | null) => string} format @param {string} over */
function summaryOf({ p50, p99 }, format, over) {
  if (p50 === null) return `Nothing to measure in ${over}.`;
  return `Over ${over}, half within ${format(p50)} and 99 of 100 within ${format(p99)}.`;
}

/** @param {any[]} reasons @param {string} over */
function reasonsOf(reasons, over) {
  const title = "Not landed, by reason";
  if (reasons.length === 0) {
    return sheet(title, el("p", { class: "soft" }, `Nothing was refused or lost in ${over}.`));
  }
  const max = Math.max(...reasons.map((row) => row.count));
  const rows = reasons.map(({ kind, reason, count: times }) => {
    const fill_ = el("div", { class: "fill" });
    fill_.style.width = `${(times / max) * 100}%`;
    return el(
      "li",
      {},
      el("div", { class: "line" }, el("code", {}, reason), el("span", {}, count(times))),
      el("p", { class: "small soft" }, reasonText(kind, reason)),
      el("div", { class: "track", "aria-hidden": "true" }, fill_),
    );
  });
  return sheet(title, el("ul", { class: "bars" }, rows));
}

const COLUMNS = [
  { title: "Sent", number: true, cell: (/** @type {any} */ row) => count(row.accepted) },
  { title: "Landed", number: true, cell: (/** @type {any} */ row) => share(row.landed_share) },
  { title: "Refused", number: true, cell: (/** @type {any} */ row) => count(row.refused) },
  {
    title: "To wire p50 / p99",
    number: true,
    cell: (/** @type {any} */ row) => pair(row.receipt_to_wire_us, micros),
  },
  {
    title: "Slot delta p50 / p99",
    number: true,
    cell: (/** @type {any} */ row) => pair(row.slot_delta, count),
  },
];

/** @param {string} over */
function nothing(over) {
  return el("p", { class: "soft" }, `Nothing was sent in ${over}.`);
}

/** @param {any[]} regions @param {string} over */
function regionsOf(regions, over) {
  if (regions.length === 0) return sheet("By region", nothing(over));
  const name = { title: "Region", cell: (/** @type {any} */ row) => row.region };
  return sheet(
    "By region",
    table("Numbers by region", [name, ...COLUMNS], regions, { stack: true, dense: true }),
  );
}

/** @param {any[]} keys @param {string} over */
function keysOf(keys, over) {
  if (keys.length === 0) return sheet("By key", nothing(over));
  const name = {
    title: "Key",
    cell: (/** @type {any} */ row) => [
      // A key that was linked to another account since has a hint only there.
      row.hint === NO_HINT ? "Another account's" : labelText(row.label),
      el("code", { class: "sub" }, row.hint),
    ],
  };
  return sheet(
    "By key",
    table("Numbers by key", [name, ...COLUMNS], keys, { stack: true, dense: true }),
  );
}
