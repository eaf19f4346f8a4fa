/**
 * Goes on after a login that was asked for in between: what the reader was about to do is done
 * again up to the point where it asks, with what was filled in. Buttons that lead to such an act
 * have its name in `data-act`. It is kept in this tab alone, for ten minutes, and used once.
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

/** The act whose button was clicked last; null where that one has none. */
export function actClicked() {
  return clicked;
}

/** What was filled in before a login, for the form that opens now. */
export function filledBefore() {
  return filled;
}

/** Before the page is left for a login. @param {string | null} act @param {Fields} [fields] */
export function keepAct(act, fields = {}) {
  if (act === null) return;
  const kept = { act, fields, path: location.pathname, atMs: now() };
  try {
    sessionStorage.setItem(NAME, JSON.stringify(kept));
  } catch {
    // A browser that keeps nothing leads back to the page alone.
  }
}

/** Once a page is shown: clicks the button again whose act a login came in between of. */
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
