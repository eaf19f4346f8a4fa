/**
 * A key that is hidden until the user reveals it. It hides again after the time that the server
 * sets, when the user leaves the page, and when the tab stays in the background. If the login is
 * too old, a link to a fresh login is shown, which leads back here.
 */

import { announce } from "../lib/announce.js";
import { post } from "../lib/api.js";
import { after, every, now } from "../lib/clock.js";
import { copyButton } from "../lib/copy.js";
import { el, fill } from "../lib/dom.js";
import { keepAct } from "../lib/resume.js";
import { errorNote } from "./states.js";

/** A page shows one revealed key at a time. */
const ACT = "reveal";

/**
 * @param {any} key as the API tells it
 * @param {AbortSignal} signal of the page
 * @param {(token: string | null) => void} onChange told when the key shows and when it hides
 * @returns {{element: HTMLElement, ask: () => void}} `ask` shows it, as the button does
 */
export function reveal(key, signal, onChange) {
  const code = el("code", { "data-testid": "key" }, key.hint);
  const button = el("button", { type: "button", class: "btn", "data-act": ACT }, "Reveal");
  const left = el("span", { class: "small soft", "aria-hidden": "true" });
  const below = el("div", { role: "alert" });
  /** @type {string | null} */
  let token = null;
  let hideAtMs = 0;
  let calledOff = () => {};
  let tick = () => {};
  const copy = copyButton("Copy the key", () => token ?? "");
  copy.hidden = true;

  function hide() {
    if (token === null) return;
    token = null;
    calledOff();
    tick();
    code.textContent = key.hint;
    button.textContent = "Reveal";
    copy.hidden = true;
    left.textContent = "";
    onChange(null);
    if (!signal.aborted) announce("The key is hidden again");
  }

  /** @param {string} text @param {number} seconds */
  function show(text, seconds) {
    token = text;
    code.textContent = text;
    button.textContent = "Hide";
    copy.hidden = false;
    hideAtMs = now() + seconds * 1000;
    calledOff = after(seconds * 1000, hide, signal);
    const count = () => {
      left.textContent = `Hides in ${Math.max(0, Math.ceil((hideAtMs - now()) / 1000))} s`;
    };
    count();
    tick = every(1000, count, signal);
    onChange(text);
    announce(`The key is shown for ${seconds} seconds`);
  }

  async function ask() {
    if (button.disabled || token !== null) return;
    fill(below);
    button.disabled = true;
    try {
      const answer = await post(`/api/v1/keys/${key.id}/reveal`);
      if (!signal.aborted) show(answer.token, answer.hide_after_seconds);
    } catch (error) {
      const onLogin = () => keepAct(ACT);
      fill(below, errorNote(error, onLogin));
      // A user that clicked further down the page must see why there is no key.
      below.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  }
  button.addEventListener("click", () => {
    if (token === null) void ask();
    else hide();
  });
  addEventListener("pagehide", hide, { signal });
  signal.addEventListener("abort", hide);
  if (!key.revealable) {
    button.disabled = true;
    const why = "This key was stored without its text, so it cannot be shown again.";
    fill(below, el("p", { class: "small soft" }, why));
  }
  const element = el("div", {}, el("div", { class: "secret" }, code, left, copy, button), below);
  return { element, ask: () => void ask() };
}
