/**
 * Resumes an action after a login that it required: opens its dialog again with the fields filled
 * in, up to the point where the user confirms. Buttons for such actions have the action's name in
 * `data-act`. The state is kept in this tab only, for ten minutes, and used once.
 */

import { now } from "./clock.js";

const NAME = "act";
const KEPT_MS_MAX = 600_000;

/** @typedef {Record<string, string>} Fields by their names */

/** @type {string | null} */
let clicked = null;
/** @type {Fields} */
let filled = {};

document.addEventListener(
  "click",
  ({ target }) => {
    const button = target instanceof Element ? target.closest("[data-act]") : null;
    clicked = button?.getAttribute("data-act") ?? null;
  },
  { capture: true },
);

/** The action whose button was clicked last; null if that button has none. */
export function actClicked() {
  return clicked;
}

/** The fields filled in before a login, for the form that opens now. */
export function filledBefore() {
  return filled;
}

/**
 * Called before the page is left for a login.
 * @param {string | null} act @param {Fields} [fields]
 */
export function keepAct(act, fields = {}) {
  if (act === null) return;
  const kept = { act, fields, path: location.pathname, atMs: now() };
  try {
    sessionStorage.setItem(NAME, JSON.stringify(kept));
  } catch {
    // Without storage the login leads back to the page only.
  }
}

/** Called once a page is shown: clicks the button of the action that a login interrupted. */
export function resumeAct() {
  const kept = takeAct();
  if (kept === null || kept.path !== location.pathname || now() - kept.atMs > KEPT_MS_MAX) return;
  const button = document.querySelector(`[data-act="${CSS.escape(kept.act)}"]`);
  if (!(button instanceof HTMLButtonElement)) return;
  filled = kept.fields;
  button.focus();
  button.click();
  filled = {};
}

/** @returns {{act: string, fields: Fields, path: string, atMs: number} | null} */
function takeAct() {
  try {
    const text = sessionStorage.getItem(NAME);
    sessionStorage.removeItem(NAME);
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
