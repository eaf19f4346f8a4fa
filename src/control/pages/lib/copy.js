/**
 * A button that copies a text and confirms it. If the browser denies the clipboard, the user is
 * asked to copy by hand.
 */

import { icon } from "../components/icons.js";
import { announce } from "./announce.js";
import { after } from "./clock.js";
import { el, fill } from "./dom.js";

const SHOWN_MS = 2000;

/**
 * A text that is there to be copied.
 * @param {string} text
 * @param {string} what begins with "Copy"
 * @param {{copied?: string, attributes?: Record<string, string>}} [options] copied: the text that
 *   the button copies, if it is another; attributes: of the text
 */
export function secret(text, what, { copied = text, attributes = {} } = {}) {
  const button = copyButton(what, () => copied);
  return el("div", { class: "secret" }, el("code", attributes, text), button);
}

/**
 * @param {string} what begins with the label: "Copy the key"
 * @param {() => string} text
 * @param {{label?: string}} [options]
 */
export function copyButton(what, text, { label = "Copy" } = {}) {
  const rest = what.slice(label.length);
  const idle = () => [icon("copy"), label, rest && el("span", { class: "unseen" }, rest)];
  const button = el("button", { type: "button", class: "btn" }, idle());
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      fill(button, icon("check"), "Copied");
      announce("Copied");
    } catch {
      // The clipboard needs a secure origin and the user's permission.
      fill(button, "Copy it by hand");
      announce("The browser does not let this page copy; copy it by hand");
    }
    after(SHOWN_MS, () => fill(button, idle()));
  });
  return button;
}
