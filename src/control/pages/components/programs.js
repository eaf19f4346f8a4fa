/**
 * The sample programs, one per tab, with the user's region and key filled in. While the key is
 * hidden a program cannot run, so its button fills in the key instead of copying. Updates change
 * existing elements and never replace them, so that the user's selection and focus survive.
 */

import { copyButton } from "../lib/copy.js";
import { el, fill } from "../lib/dom.js";
import { plural, sol } from "../lib/format.js";
import { snippets } from "../lib/snippets.js";
import { tabs } from "./tabs.js";

/**
 * @typedef {{key: any, token: string | null, region: any,
 *   tip: {accounts: string[], lamportsMin: number} | null, tipAsked: boolean}} State
 * @typedef {ReturnType<typeof snippetBox>} Box
 */

/** Placeholder for a key that cannot be revealed. */
const YOUR_KEY = "YOUR-KEY";

/**
 * @param {any} site
 * @param {State} state read anew by each `refresh`
 * @param {() => void} onFill the reader wants the key filled in
 */
export function programs(site, state, onFill) {
  const note = el("p", { class: "note", role: "status" });
  const anyQuic = site.regions.some((/** @type {any} */ { quic }) => quic !== null);
  const all = snippets(fillingOf(site, state)).filter((each) => anyQuic || tabOf(each) !== "quic");
  const boxes = new Map(all.map(({ name, title }) => [name, snippetBox(title, onFill)]));
  const shown = all.filter(({ tab }) => tab === undefined);
  /** @param {string} name */
  const contentOf = (name) =>
    all
      .filter((each) => tabOf(each) === name)
      .flatMap((each) => boxes.get(each.name)?.content ?? []);
  const element = el("div", {}, note, tabs("Programs", shown, contentOf));

  function refresh() {
    const text = noteOf(state);
    note.hidden = text === null;
    if (note.textContent !== text) note.textContent = text;
    const filling = fillingOf(site, state);
    const canFill = state.token === null && state.key !== null && state.key.revealable;
    for (const snippet of snippets(filling)) {
      boxes.get(snippet.name)?.show(snippet, filling, canFill, state.tip);
    }
  }

  refresh();
  return { element, refresh };
}

/** The tab under which it stands. @param {import("../lib/snippets.js").Snippet} snippet */
function tabOf({ name, tab }) {
  return tab ?? name;
}

/** @param {any} site @param {State} state */
function fillingOf({ examples }, { key, token, region, tip }) {
  return {
    url: region.url.replace(/\/$/, ""),
    key: token ?? (key?.revealable ? key.hint : YOUR_KEY),
    tipAccount: tip?.accounts[0] ?? "TIP-ACCOUNT",
    tipLamports: tip?.lamportsMin ?? 1_000_000,
    rpcUrl: examples?.rpc_url ?? null,
    exampleUrl: examples?.transaction_url ?? null,
    authorityFile: examples?.authority_file ?? null,
    quic: region.quic,
  };
}

/** Why the programs cannot run as shown, or null. @param {State} state */
function noteOf({ key, token, region, tip, tipAsked }) {
  if (tip === null && tipAsked) {
    return `${region.name} does not respond, so nothing can be sent to it now. Choose another region.`;
  }
  if (token !== null) return null;
  if (key?.revealable) return "The key is hidden. Fill it in, then copy and run.";
  return `Put a key in the place of ${YOUR_KEY}.`;
}

/** One program and its button. @param {string} title @param {() => void} onFill */
function snippetBox(title, onFill) {
  let text = "";
  const before = el("p");
  const code = el("code");
  const copy = copyButton(`Copy the program for ${title}`, () => text);
  const fillIn = el("button", { type: "button", class: "btn", onclick: onFill }, "Fill in the key");
  const pre = el(
    "pre",
    { tabindex: 0, role: "region", "aria-label": `Program for ${title}` },
    code,
  );
  const box = el("div", { class: "code" }, pre, copy, fillIn);
  const tips = el("div");
  let tipShown = "";
  return {
    content: [before, box, tips],
    /**
     * @param {import("../lib/snippets.js").Snippet} snippet
     * @param {import("../lib/snippets.js").Filling} filling
     * @param {boolean} canFill
     * @param {State["tip"]} tip
     */
    show(snippet, filling, canFill, tip) {
      before.textContent = snippet.before;
      box.hidden = snippet.code === null;
      // Once a tab.
      const isOfQuic = snippet.code === null && filling.quic !== null;
      tips.hidden = snippet.tab !== undefined || (snippet.code === null && !isOfQuic);
      const lines = snippet.code === null ? "" : snippet.code(filling);
      if (lines !== text) code.textContent = lines;
      text = lines;
      swap(canFill ? copy : fillIn, canFill ? fillIn : copy);
      const told = JSON.stringify(tip);
      if (told === tipShown) return;
      tipShown = told;
      fill(tips, tipNote(tip));
    },
  };
}

/**
 * Hides one button and shows the other, which takes over the focus.
 * @param {any} from @param {any} to
 */
function swap(from, to) {
  if (!to.hidden && from.hidden) return;
  const focused = document.activeElement === from;
  to.hidden = false;
  from.hidden = true;
  if (focused) to.focus();
}

/** @param {State["tip"]} tip */
function tipNote(tip) {
  if (tip === null) return null;
  const { accounts, lamportsMin } = tip;
  const to =
    accounts.length === 1 ? "this account" : `one of ${plural(accounts.length, "account")}`;
  return el(
    "details",
    {},
    el("summary", {}, `The tip: at least ${sol(lamportsMin)} to ${to}`),
    el(
      "ul",
      {},
      accounts.map((account) => el("li", {}, el("code", { class: "break" }, account))),
    ),
  );
}
