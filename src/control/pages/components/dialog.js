/**
 * Dialogs: the browser's own element, which keeps the keyboard inside, closes on Escape and gives
 * the focus back. A dialog is a form; what it does may fail, and then it stays open and says so.
 */

import { ApiError } from "../lib/api.js";
import { el, fill, freshId } from "../lib/dom.js";
import { actClicked, filledBefore, keepAct } from "../lib/resume.js";
import { errorNote, errorText } from "./states.js";

/**
 * Asks, and does. Resolves once the dialog is closed: with what `act` answered, or null. Closing it
 * does not call off what was begun: its answer is waited for, and told as any other. Where it needs a
 * more recent login, that leads back to this dialog and what was filled in.
 * @template Answer
 * @param {{title: string, content: import("../lib/dom.js").Child[], button: string,
 *   danger?: boolean, act: (form: HTMLFormElement) => Promise<Answer>}} options
 * @returns {Promise<Answer | null>}
 */
export function ask({ title, content, button, danger = false, act }) {
  const fault = el("div", { role: "alert" });
  const submit = el("button", { class: danger ? "btn main danger" : "btn main" }, button);
  const cancel = el("button", { type: "button", class: "btn" }, "Cancel");
  /** @type {Promise<Answer | null>} */
  let done = Promise.resolve(null);
  const form = el("form", { method: "dialog" }, heading(title), content, fault);
  form.append(el("div", { class: "buttons" }, cancel, submit));
  const onLogin = keeper(form);
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
      showError(form, fault, error, onLogin);
      submit.disabled = false;
      return null;
    }
  }
  return closed(dialog, () => done);
}

/**
 * Shows something, with one button to close.
 * @param {{title: string, content: import("../lib/dom.js").Child[], button?: string}} options
 */
export function tell({ title, content, button = "Done" }) {
  const close = el("button", { class: "btn main" }, button);
  const form = el("form", { method: "dialog" }, heading(title), content);
  form.append(el("div", { class: "buttons" }, close));
  return closed(open(title, form), () => null);
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
  // A dialog belongs to its page: going back with the browser's own button ends it.
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
 * Fills in what was filled in before a login; answers with what keeps it for the next one.
 * @param {HTMLFormElement} form
 */
function keeper(form) {
  const act = actClicked();
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
 * A fault beside its field where it has one, else at the end of the form.
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
