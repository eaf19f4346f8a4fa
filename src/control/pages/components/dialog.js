/**
 * Dialogs: the browser's `dialog` element, which traps keyboard focus, closes on Escape and
 * restores the focus. A dialog contains a form; if its action fails, it stays open and shows the
 * error.
 */

import { ApiError } from "../lib/api.js";
import { el, fill, freshId } from "../lib/dom.js";
import { actClicked, filledBefore, keepAct } from "../lib/resume.js";
import { errorNote, errorText } from "./states.js";

/**
 * Asks the user and runs `act`. Resolves once the dialog is closed: with the result of `act`, or
 * null. Closing does not cancel a running `act`: its result is still awaited and reported. If `act`
 * needs a more recent login, the login leads back to this dialog with its fields filled in, by the
 * action `resume`: the one whose button was clicked last, if the caller names no other.
 * @template Answer
 * @param {{title: string, content: import("../lib/dom.js").Child[], button: string,
 *   danger?: boolean, resume?: string | null,
 *   act: (form: HTMLFormElement) => Promise<Answer>}} options
 * @returns {Promise<Answer | null>}
 */
export function ask({ title, content, button, danger = false, resume = actClicked(), act }) {
  const fault = el("div", { role: "alert" });
  const submit = el("button", { class: danger ? "btn main danger" : "btn main" }, button);
  const cancel = el("button", { type: "button", class: "btn" }, "Cancel");
  /** @type {Promise<Answer | null>} */
  let done = Promise.resolve(null);
  const form = el("form", { method: "dialog" }, heading(title), content, fault);
  form.append(el("div", { class: "buttons" }, cancel, submit));
  const onLogin = keeper(form, resume);
  const dialog = open(title, form);
  cancel.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    clearErrors(form);
    fill(fault);
    done = run();
  });

  async function run() {
    try {
      const answer = await act(form);
      dialog.close();
      return answer;
    } catch (error) {
      if (dialog.open) showError(form, fault, error, onLogin);
      else void tellFailure(error, onLogin);
      submit.disabled = false;
      return null;
    }
  }
  return closed(dialog, () => done);
}

/**
 * Shows content with one button to close.
 * @param {{title: string, content: import("../lib/dom.js").Child[], button?: string}} options
 */
export function tell({ title, content, button = "Done" }) {
  const close = el("button", { class: "btn main" }, button);
  const form = el("form", { method: "dialog" }, heading(title), content);
  form.append(el("div", { class: "buttons" }, close));
  return closed(open(title, form), () => null);
}

/** Of an action whose dialog was closed meanwhile. @param {unknown} error @param {() => void} onLogin */
function tellFailure(error, onLogin) {
  const content = [errorNote(error, onLogin)];
  return tell({ title: "This did not work", content, button: "Close" });
}

/** @param {string} title */
function heading(title) {
  return el("h2", {}, title);
}

/** @param {string} title @param {HTMLElement} form */
function open(title, form) {
  const dialog = el("dialog", { "aria-label": title }, form);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * @template Answer
 * @param {HTMLDialogElement} dialog
 * @param {() => Answer | Promise<Answer>} answer
 * @returns {Promise<Answer>}
 */
function closed(dialog, answer) {
  // A dialog belongs to its page: the browser's back button closes it.
  const leave = () => dialog.close();
  addEventListener("popstate", leave);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      removeEventListener("popstate", leave);
      dialog.remove();
      resolve(answer());
    });
  });
}

/**
 * Restores the fields from before a login; returns a function that saves them for the next one.
 * @param {HTMLFormElement} form
 * @param {string | null} act the action that opens the dialog again
 */
function keeper(form, act) {
  for (const [name, value] of Object.entries(filledBefore())) {
    const field = form.elements.namedItem(name);
    if (field !== null && "value" in field) field.value = value;
  }
  return () => {
    const fields = [...new FormData(form)].map(([name, value]) => [name, String(value)]);
    keepAct(act, Object.fromEntries(fields));
  };
}

/** @param {HTMLFormElement} form */
function clearErrors(form) {
  for (const wrong of form.querySelectorAll(".wrong")) wrong.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
  }
}

/**
 * Shows an error next to its field, or at the end of the form if it has none.
 * @param {HTMLFormElement} form
 * @param {Element} place
 * @param {unknown} error
 * @param {() => void} onLogin
 */
function showError(form, place, error, onLogin) {
  const fields = error instanceof ApiError ? (error.fields["fields"] ?? []) : [];
  let first = null;
  for (const { path, message } of fields) {
    const name = String(path).split(".", 1)[0] ?? "";
    const input = form.elements.namedItem(name);
    if (!(input instanceof HTMLElement)) continue;
    const id = freshId("wrong");
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", id);
    input.after(el("p", { class: "wrong", id }, errorText(String(message))));
    first ??= input;
  }
  first?.focus();
  if (first === null) fill(place, errorNote(error, onLogin));
}
