/**
 * Management tokens, for programs that create and revoke keys or read usage without a browser.
 */

import { announce } from "../lib/announce.js";
import { post, read, remove } from "../lib/api.js";
import { secret } from "../lib/copy.js";
import { el } from "../lib/dom.js";
import { ago, agoAndFull } from "../lib/times.js";
import { ask, tell } from "./dialog.js";
import { expiryField, expiryOf, selectField, textField, textOf } from "./fields.js";
import { sheet, sheetWith } from "./page-header.js";
import { fillWith } from "./states.js";
import { table } from "./table.js";

const TITLE = "Management tokens";
const SCOPES = /** @type {const} */ ([
  ["read", "Read: numbers, keys, receipts"],
  ["write", "Write: also make, change and end keys"],
]);

/** @param {HTMLElement} place @param {AbortSignal} signal */
export function tokenSheet(place, signal) {
  /** @returns {Promise<void>} */
  const again = () => fillWith(place, signal, content, (state) => sheet(TITLE, state));
  async function content() {
    const { tokens } = await read("/api/v1/tokens", signal);
    const make = el("button", { type: "button", class: "btn", "data-act": "make" }, "Make a token");
    make.addEventListener("click", async () => {
      if ((await makeToken()) !== null) await again();
    });
    const about = el(
      "p",
      { class: "soft" },
      "For programs that use this dashboard's API. ",
      el("a", { href: "/api/openapi.json", target: "_blank", rel: "noopener" }, "Its description"),
      " is made from the code that runs.",
    );
    const list =
      tokens.length === 0
        ? el("p", { class: "soft" }, "There is none.")
        : table(TITLE, columns(again), tokens, { stack: true });
    return sheetWith(TITLE, make, about, list);
  }
  return again();
}

async function makeToken() {
  const made = await ask({
    title: "Make a management token",
    content: [
      textField("Label", { name: "label", required: true, maxlength: 64, autocomplete: "off" }),
      selectField("It may", "scope", SCOPES, "read"),
      expiryField(null),
    ],
    button: "Make the token",
    act: (form) =>
      post("/api/v1/tokens", {
        label: textOf(form, "label"),
        scope: textOf(form, "scope"),
        expires_at: expiryOf(form) ?? null,
      }),
  });
  if (made === null) return null;
  const { token } = made;
  await tell({
    title: "The new token",
    content: [
      el("p", {}, "It is shown this once. It goes into the header Authorization, after Bearer."),
      secret(token, "Copy the token"),
    ],
  });
  return made;
}

/** @param {() => Promise<void>} again */
function columns(again) {
  /** @type {import("./table.js").Column<any>[]} */
  const all = [
    {
      title: "Label",
      cell: ({ label, hint }) => [label, el("code", { class: "sub" }, hint)],
    },
    { title: "May", cell: ({ scope }) => (scope === "write" ? "Read and write" : "Read") },
    { title: "Last used", cell: ({ last_used_at }) => ago(last_used_at) },
    { title: "Made", cell: ({ created_at }) => ago(created_at) },
    { title: "Expires", cell: ({ expires_at }) => agoAndFull(expires_at) },
    { title: "Revoke", cell: (token) => revokeButton(token, again) },
  ];
  return all;
}

/** @param {{id: string, label: string}} token @param {() => Promise<void>} again */
function revokeButton({ id, label }, again) {
  const name = `Revoke the token ${label}`;
  const button = el(
    "button",
    { type: "button", class: "btn danger", "aria-label": name, "data-act": `revoke ${id}` },
    "Revoke",
  );
  button.addEventListener("click", async () => {
    const done = await ask({
      title: `Revoke ${label}?`,
      content: [el("p", {}, "Programs that use it are refused from now on.")],
      button: "Revoke the token",
      danger: true,
      act: () => remove(`/api/v1/tokens/${id}`),
    });
    if (done === null) return;
    await again();
    announce("The token is revoked");
  });
  return button;
}
