/**
 * Relative times, updated while the page is open, with the absolute time next to them or in the
 * title. The absolute time is in the user's time zone and names it.
 */

import { now } from "./clock.js";
import { el } from "./dom.js";

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const full = new Intl.DateTimeFormat("en-GB", {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

/** @type {readonly [Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
];

/** @param {number} atMs */
function words(atMs) {
  const distance = atMs - now();
  for (const [unit, ms] of UNITS) {
    const steps = Math.trunc(distance / ms);
    if (steps !== 0) return relative.format(steps, unit);
  }
  return "now";
}

/** The absolute time in the user's time zone. @param {string} iso */
export function absolute(iso) {
  return full.format(new Date(iso));
}

/**
 * "3 min. ago" as an element that is kept up to date; `none` if there is no time.
 * @param {string | null} iso
 * @param {string} [none]
 */
export function ago(iso, none = "never") {
  if (iso === null) return el("span", { class: "soft" }, none);
  const text = words(Date.parse(iso));
  return el("time", { datetime: iso, title: absolute(iso), "data-ago": true }, text);
}

/** The same with the absolute time below. @param {string | null} iso @param {string} [none] */
export function agoAndFull(iso, none = "never") {
  if (iso === null) return [ago(iso, none)];
  return [ago(iso), el("span", { class: "sub" }, absolute(iso))];
}

/** Updates every relative time on the page. */
export function refreshTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = words(Date.parse(time.getAttribute("datetime") ?? ""));
    if (time.textContent !== text) time.textContent = text;
  }
}
