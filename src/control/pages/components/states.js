/**
 * Placeholders of a page: loading, empty, or failed.
 */

import { ApiError } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { listOf } from "../lib/format.js";
import { logIn } from "../lib/session.js";

const DEFECT = "something went wrong on this page; loading it again may help";

/** Grey shapes during loading. */
export function loading(what = "Loading", bones = 3) {
  const shapes = Array.from({ length: bones }, () => el("div"));
  return el("div", { class: "bones", role: "status", "aria-label": what }, shapes);
}

/**
 * An empty result that is not an error.
 * @param {string} title
 * @param {import("../lib/dom.js").Child} text
 * @param {...import("../lib/dom.js").Child} actions
 */
export function empty(title, text, ...actions) {
  return el(
    "div",
    { class: "state" },
    el("h2", {}, title),
    el("p", {}, text),
    actions.length > 0 && el("div", { class: "buttons" }, actions),
  );
}

/**
 * An error, and what the user can do about it.
 * @param {unknown} error
 * @param {(() => void) | null} retry
 */
export function failed(error, retry = null) {
  const ended = error instanceof ApiError && error.reason === "unauthorized";
  if (ended) {
    return empty("This session has ended", "Log in again to go on where you were.", loginButton());
  }
  const button =
    retry && el("button", { type: "button", class: "btn", onclick: retry }, "Try again");
  const text = errorText(error);
  const content = [el("h2", {}, "This did not work"), el("p", {}, text)];
  return el("div", { class: "state", role: "alert" }, content, button && buttonsOf(button));
}

/**
 * Fills a place with what `content` resolves with, or with its error and a way to try again.
 * @param {Element} place
 * @param {AbortSignal} signal of the page
 * @param {() => Promise<import("../lib/dom.js").Child | import("../lib/dom.js").Child[]>} content
 * @param {(state: Node) => Node} [around] what is around an error
 */
export async function fillWith(place, signal, content, around = (state) => state) {
  try {
    fill(place, await content());
  } catch (error) {
    if (signal.aborted) return;
    const again = () => void fillWith(place, signal, content, around);
    fill(place, around(failed(error, again)));
  }
}

/**
 * An error in one line, with a login link if a login is missing or too old.
 * @param {unknown} error
 * @param {() => void} [onLeave] called before the page is left for a login because of its age
 */
export function errorNote(error, onLeave) {
  const reason = error instanceof ApiError ? error.reason : "";
  if (reason === "login_again") {
    const text = "This needs a login of the last minutes. It leads back here.";
    return loginNote(text, loginButton("Log in again", { fresh: true }, onLeave));
  }
  if (reason === "unauthorized") return sessionEnded();
  return el("p", { class: "note bad" }, errorText(error));
}

/** An error next to content that the page still shows. */
export function sessionEnded() {
  return loginNote("This session has ended. A login leads back here.", loginButton());
}

/** @param {string} text @param {Node} way */
function loginNote(text, way) {
  return el("div", {}, el("p", { class: "note warn" }, text), buttonsOf(way));
}

/**
 * A button that leads to the provider and back to this page; shows an error if that fails.
 * @param {string} text
 * @param {{fresh?: boolean}} [options]
 * @param {() => void} [onLeave]
 */
function loginButton(text = "Log in", options = {}, onLeave = () => {}) {
  const fault = el("p", { class: "wrong", role: "alert" });
  const button = el("button", { type: "button", class: "btn main" }, text);
  button.addEventListener("click", async () => {
    button.disabled = true;
    fault.textContent = "";
    onLeave();
    try {
      await logIn(here(), options);
    } catch (error) {
      button.disabled = false;
      fault.textContent = errorText(error);
    }
  });
  return el("div", {}, button, fault);
}

/** @param {Node} button */
function buttonsOf(button) {
  return el("div", { class: "buttons" }, button);
}

/**
 * Lists the regions that did not respond; nothing if all did.
 * @param {readonly string[]} unreachable
 */
export function unreachableNote(unreachable) {
  if (unreachable.length === 0) return null;
  const missing = unreachable.length === 1 ? "what it knows" : "what they know";
  const text = `No response from ${listOf(unreachable)}: ${missing} is missing here.`;
  return el("p", { class: "note warn" }, text);
}

/**
 * The error message as a sentence. An error that did not come from the API is a bug in a page, and
 * its text is for a developer.
 * @param {unknown} error
 */
export function errorText(error) {
  const worded = error instanceof ApiError || typeof error === "string";
  if (!worded) reportError(error);
  const text = worded ? (typeof error === "string" ? error : error.message) : DEFECT;
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/** The current page, as the return path. */
export function here() {
  return location.pathname + location.search;
}
