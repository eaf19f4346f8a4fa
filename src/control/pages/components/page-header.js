/**
 * The header of a page: title, description, and tools.
 */

import { el } from "../lib/dom.js";

/**
 * @param {string} title
 * @param {import("../lib/dom.js").Child} text
 * @param {...import("../lib/dom.js").Child} tools
 */
export function pageHeader(title, text, ...tools) {
  return el(
    "div",
    { class: "head" },
    el("div", {}, el("h1", {}, title), text && el("p", {}, text)),
    tools.length > 0 && el("div", { class: "tools" }, tools),
  );
}

/**
 * A section with a heading.
 * @param {string} title
 * @param {...(import("../lib/dom.js").Child | import("../lib/dom.js").Child[])} content
 */
export function sheet(title, ...content) {
  return el("section", { class: "sheet", "aria-label": title }, el("h2", {}, title), ...content);
}

/**
 * The same with something beside the heading.
 * @param {string} title
 * @param {import("../lib/dom.js").Child} tool
 * @param {...(import("../lib/dom.js").Child | import("../lib/dom.js").Child[])} content
 */
export function sheetWith(title, tool, ...content) {
  const head = el("div", { class: "sheet-head" }, el("h2", {}, title), tool);
  return el("section", { class: "sheet", "aria-label": title }, head, ...content);
}

/**
 * An entry of a list of facts.
 * @param {string} name
 * @param {...(import("../lib/dom.js").Child | import("../lib/dom.js").Child[])} value
 */
export function fact(name, ...value) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, ...value));
}

/**
 * A choice, as a row of radio buttons.
 * @param {string} legend
 * @param {readonly (readonly [string, string])[]} choices value and label
 * @param {string} chosen
 * @param {(value: string) => void} onChange
 */
export function segments(legend, choices, chosen, onChange) {
  const name = legend.toLowerCase().replaceAll(" ", "-");
  return el(
    "fieldset",
    {},
    el("legend", { class: "unseen" }, legend),
    el(
      "div",
      { class: "segments" },
      choices.map(([value, label]) => {
        const onchange = () => onChange(value);
        const checked = value === chosen;
        const input = el("input", { type: "radio", name, value, checked, onchange });
        return el("label", {}, input, el("span", {}, label));
      }),
    ),
  );
}
