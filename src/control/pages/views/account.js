/**
 * The owner of this account, its sessions, and the tokens with which programs use the API in its
 * name.
 */

import { ask, tell } from "../components/dialog.js";
import { textField, textOf } from "../components/fields.js";
import { fact, pageHeader, sheet, sheetWith } from "../components/page-header.js";
import { errorNote, fillWith } from "../components/states.js";
import { table } from "../components/table.js";
import { tokenSheet } from "../components/tokens.js";
import { announce } from "../lib/announce.js";
import { ApiError, patch, read, remove } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { logOutEverywhere } from "../lib/session.js";
import { ago, agoAndFull } from "../lib/times.js";
import { browserOf } from "./audit.js";

/** @param {import("../app.js").Context} context */
export async function page({ me, main, signal }) {
  const sessions = el("div");
  const tokens = el("div");
  fill(main, pageHeader("Account", null), who(me), sessions, tokens);
  await Promise.all([showSessions(sessions, signal), tokenSheet(tokens, signal)]);
}

/** @param {any} me */
function who(me) {
  const name = el("dd", {}, me.account.name);
  const rename = el("button", { type: "button", class: "btn" }, "Rename");
  rename.addEventListener("click", async () => {
    const value = me.account.name;
    const answer = await ask({
      title: "Rename the account",
      content: [textField("Name", { name: "name", value, required: true, maxlength: 64 })],
      button: "Save",
      act: (form) => patch("/api/v1/me", { name: textOf(form, "name") }),
    });
    if (answer === null) return;
    me.account.name = answer.name;
    name.textContent = answer.name;
    announce("The account is renamed");
  });
  const people = me.people.map((/** @type {any} */ person) =>
    el(
      "div",
      {},
      el("dt", {}, "Login"),
      el("dd", {}, person.name ?? person.email ?? person.subject),
      el("dd", { class: "sub" }, `${person.subject} at ${person.issuer}`),
    ),
  );
  const facts = el(
    "dl",
    { class: "facts" },
    el("div", {}, el("dt", {}, "Account"), name),
    people,
    fact("Since", ...agoAndFull(me.account.created_at)),
  );
  return sheet("Who you are", facts, el("div", { class: "buttons" }, rename));
}

/** @param {HTMLElement} place @param {AbortSignal} signal */
function showSessions(place, signal) {
  const again = () => fillWith(place, signal, content, (state) => sheet("Sessions", state));
  async function content() {
    const { sessions } = await read("/api/v1/sessions", signal);
    const everywhere = el("button", { type: "button", class: "btn danger" }, "Log out everywhere");
    everywhere.addEventListener("click", () => void leaveEverywhere());
    const list = table(
      "Sessions",
      columns(() => void again()),
      sessions,
      { stack: true },
    );
    return sheetWith("Sessions", everywhere, list);
  }
  return again();
}

function leaveEverywhere() {
  return ask({
    title: "Log out everywhere?",
    content: [el("p", {}, "All sessions of this account end now, this one too. Keys go on.")],
    button: "Log out everywhere",
    danger: true,
    act: logOutEverywhere,
  });
}

/** @param {() => void} again */
function columns(again) {
  /** @type {import("../components/table.js").Column<any>[]} */
  const all = [
    {
      title: "Browser",
      cell: ({ user_agent, current }) => [
        user_agent === null ? "Unknown" : browserOf(user_agent),
        current && el("span", { class: "sub" }, "this one"),
      ],
    },
    { title: "From", cell: ({ address }) => address ?? "–" },
    { title: "Last seen", cell: ({ last_seen_at }) => ago(last_seen_at) },
    { title: "Logged in", cell: ({ created_at }) => agoAndFull(created_at) },
    { title: "Ends", cell: ({ ends_at }) => ago(ends_at) },
    {
      title: "End it",
      cell: ({ id, current, address }) =>
        current
          ? "–"
          : endButton(
              `End the session from ${address ?? "an unknown address"}`,
              `/api/v1/sessions/${id}`,
              again,
            ),
    },
  ];
  return all;
}

/** @param {string} label @param {string} path @param {() => void} again */
function endButton(label, path, again) {
  const button = el("button", { type: "button", class: "btn", "aria-label": label }, "End");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await remove(path);
    } catch (error) {
      // A session that has already ended is fine.
      if (!(error instanceof ApiError && error.reason === "not_found")) {
        button.disabled = false;
        const title = "The session may go on";
        void tell({ title, content: [errorNote(error)], button: "Close" });
        return;
      }
    }
    announce("The session ended");
    again();
  });
  return button;
}
