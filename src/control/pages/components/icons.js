/**
 * The icons, as strokes on a grid of 20. They always have a label next to or below them.
 */

import { svg } from "../lib/dom.js";

/** @type {Record<string, string>} */
const PATHS = {
  overview: "M3 16V9m5 7V4m5 12v-5m4 5V7",
  connect:
    "M8 12l4-4M6.5 9.5L4.8 11.2a3 3 0 004.2 4.2L10.7 13.7M13.5 10.5l1.7-1.7a3 3 0 00-4.2-4.2L9.3 6.3",
  keys: "M12.5 3.5a4 4 0 11-3.3 6.3L4 15v2h2.5v-2H9v-2l1.2-1.2M13.5 6.5h.01",
  transactions: "M3 7h12l-3-3M17 13H5l3 3",
  plan: "M3 14a7 7 0 1114 0M10 14l3.5-4",
  audit: "M5 3h10v14H5zM8 7h4M8 10h4M8 13h2",
  account: "M10 10a3.2 3.2 0 100-6.4 3.2 3.2 0 000 6.4zM4 17c.6-3.3 3-4.8 6-4.8s5.4 1.5 6 4.8",
  admin: "M10 2.8l6 2.4v4.3c0 3.7-2.5 6.3-6 7.7-3.5-1.4-6-4-6-7.7V5.2zM7.5 10l1.8 1.8 3.2-3.4",
  copy: "M7 7h9v10H7zM13 7V3H4v10h3",
  check: "M4 10.5l4 4 8-9",
  light:
    "M10 6.5a3.5 3.5 0 100 7 3.5 3.5 0 000-7zM10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6L16 16M4 16l1.4-1.4M14.6 5.4L16 4",
  dark: "M16.5 12A7 7 0 018 3.5a7 7 0 108.5 8.5z",
  system: "M3 4h14v9H3zM7 17h6M10 13v4",
  plus: "M10 4v12M4 10h12",
  out: "M8 4H4v12h4M12.5 6.5L16 10l-3.5 3.5M16 10H8",
};

/** @param {string} name */
export function icon(name, size = 18) {
  const stroke = {
    fill: "none",
    stroke: "currentColor",
    "stroke-width": 1.6,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  };
  const frame = { viewBox: "0 0 20 20", width: size, height: size, "aria-hidden": "true" };
  return svg("svg", frame, svg("path", { d: PATHS[name] ?? "", ...stroke }));
}
