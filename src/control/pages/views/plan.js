/**
 * The limits of the plan, how much of them is used, and whether they apply per edge or to all
 * edges together.
 */

import { pageHeader, sheet } from "../components/page-header.js";
import { read } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";

const MINUTES = 2;

/** @param {import("../app.js").Context} context */
export async function page({ main, signal }) {
  const { plan, scope, keys, recent } = await read("/api/v1/plan", signal);
  const each = scope === "edge";
  const keysMax = plan.rights.keys_max;
  const requests = each ? recent.busiest_edge_requests : recent.requests;
  const mean = Math.round((requests / (MINUTES * 60)) * 10) / 10;
  const where = each
    ? "The limits hold at each edge separately: sending to two edges gives twice as much."
    : "The limits hold for all edges together, however the requests are spread over them.";
  const lost = "A request above the limit is refused with 429 and costs nothing.";
  fill(
    main,
    pageHeader("Plan", `This account is on the plan ${plan.name}.`),
    el(
      "div",
      { class: "grid two" },
      sheet(
        "Requests a second",
        big(count(plan.rate_per_second), each ? "at each edge" : "at all edges together"),
        meter(
          `Mean of the last two minutes${each ? " at the busiest edge" : ""}`,
          mean,
          plan.rate_per_second,
          `${count(mean)} a second`,
        ),
      ),
      sheet(
        "Burst",
        big(count(plan.burst), `${plan.burst === 1 ? "request" : "requests"} in one moment`),
        el("p", { class: "soft" }, "After a pause this number is accepted without waiting."),
      ),
      sheet(
        "Keys",
        big(count(keys), keysMax === undefined ? "that work" : `of ${count(keysMax)} that work`),
        keysMax !== undefined && meter("Keys in use", keys, keysMax, `${count(keys)} in use`),
        el("p", {}, el("a", { href: "/keys" }, "Go to the keys")),
      ),
      sheet(
        "In the last two whole minutes",
        big(count(recent.requests), recent.requests === 1 ? "request" : "requests"),
        el(
          "p",
          { class: "soft" },
          `${plural(recent.accepted, "transaction")} sent, ${count(recent.refused)} refused.`,
        ),
      ),
    ),
    sheet("How it is counted", el("p", {}, `${where} ${lost}`)),
    el("p", { class: "soft" }, "Whoever runs this service can change the plan."),
  );
}

/** @param {string} value @param {string} text */
function big(value, text) {
  return el(
    "p",
    {},
    el("strong", { class: "figure" }, value),
    " ",
    el("span", { class: "soft" }, text),
  );
}

/** @param {string} label @param {number} value @param {number} max @param {string} words */
function meter(label, value, max, words) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  const bar = el("div", { class: share >= 0.9 ? "full" : null });
  bar.style.width = `${share * 100}%`;
  const attributes = {
    class: "meter",
    role: "meter",
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": max,
    "aria-valuenow": Math.min(value, max),
    "aria-valuetext": words,
  };
  return el(
    "div",
    {},
    el("p", { class: "small soft" }, `${label}: ${words}`),
    el("div", attributes, bar),
  );
}
