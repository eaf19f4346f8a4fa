/**
 * Form fields, each with a label and a hint, and their values in the form that the API expects.
 */

import { now } from "../lib/clock.js";
import { el, freshId } from "../lib/dom.js";

const DAY_MS = 86_400_000;

/**
 * A text or number input.
 * @param {string} label
 * @param {Record<string, import("../lib/dom.js").Attribute>} attributes of the input
 * @param {string} [hint]
 */
export function textField(label, attributes, hint) {
  return field(label, (named) => el("input", { type: "text", ...attributes, ...named }), hint);
}

/** Attributes of an input for a key, a signature or the like. */
export const CODE_INPUT = {
  required: true,
  autocomplete: "off",
  spellcheck: "false",
  autocapitalize: "none",
  class: "mono",
};

/**
 * A text area.
 * @param {string} label @param {string} name @param {string} value @param {string} hint
 */
export function linesField(label, name, value, hint) {
  const make = (/** @type {object} */ named) =>
    el("textarea", { name, rows: 3, spellcheck: "false", ...named }, value);
  return field(label, make, hint);
}

/**
 * @param {string} label
 * @param {string} name
 * @param {readonly (readonly [string, string])[]} options value and label
 * @param {string} chosen
 * @param {string} [hint]
 */
export function selectField(label, name, options, chosen, hint) {
  const make = (/** @type {object} */ named) =>
    el(
      "select",
      { name, ...named },
      options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
    );
  return field(label, make, hint);
}

/**
 * @param {string} label
 * @param {(named: {id: string, "aria-describedby": string | null}) => HTMLElement} make
 * @param {string} [hint]
 */
function field(label, make, hint) {
  const id = freshId("field");
  const hintId = hint === undefined ? null : `${id}-hint`;
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, label),
    make({ id, "aria-describedby": hintId }),
    hint !== undefined && el("p", { class: "hint", id: hintId }, hint),
  );
}

/** An expiry; `keep` is the present one, offered as unchanged. @param {string | null} keep */
export function expiryField(keep) {
  const kept = /** @type {const} */ (["keep", "As it is"]);
  const options = /** @type {const} */ ([
    ["", "Never"],
    ["1", "In a day"],
    ["30", "In 30 days"],
    ["90", "In 90 days"],
    ["365", "In a year"],
  ]);
  const all = keep === null ? options : [kept, ...options];
  return selectField("Expires", "expires_at", all, keep === null ? "" : "keep");
}

/**
 * The text of a field.
 * @param {HTMLFormElement} form
 * @param {string} name
 */
export function textOf(form, name) {
  return String(new FormData(form).get(name) ?? "").trim();
}

/** A number, or null for an empty field. @param {HTMLFormElement} form @param {string} name */
export function numberOf(form, name) {
  const text = textOf(form, name);
  return text === "" ? null : Number(text);
}

/** The non-empty lines of a field. @param {HTMLFormElement} form @param {string} name */
export function linesOf(form, name) {
  return textOf(form, name)
    .split(/[\s,]+/)
    .filter((line) => line !== "");
}

/**
 * The chosen expiry: a time, null for never, undefined to keep it.
 * @param {HTMLFormElement} form
 */
export function expiryOf(form) {
  const days = textOf(form, "expires_at");
  if (days === "keep") return undefined;
  return days === "" ? null : new Date(now() + Number(days) * DAY_MS).toISOString();
}
