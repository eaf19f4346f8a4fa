/**
 * From a key to a first transaction: the key, the region nearest to this browser, and a program to
 * paste, filled in with both.
 */

import { read } from "../lib/api.js";
import { copyButton } from "../lib/copy.js";
import { el, fill } from "../lib/dom.js";
import { plural, sol } from "../lib/format.js";
import { snippets } from "../lib/snippets.js";
import { head, sheet } from "../parts/head.js";
import { regionTable } from "../parts/regions.js";
import { reveal } from "../parts/reveal.js";
import { empty } from "../parts/states.js";
import { tabs } from "../parts/tabs.js";

/** @param {import("../app.js").Context} context */
export async function page({ site, main, signal }) {
  const { keys } = await read("/api/v1/keys", signal);
  const usable = keys.filter((/** @type {any} */ { state }) => state === "live");
  const state = {
    key: usable[0] ?? null,
    /** @type {string | null} */
    token: null,
    region: site.regions[0] ?? null,
    /** @type {{accounts: string[], lamportsMin: number} | null} */
    tip: null,
  };
  const program = el("div");
  const keyBox = el("div");
  /** @type {ReturnType<typeof tabs> | null} */
  let shown = null;
  const note = el("p", { class: "note", role: "status" });

  function refresh() {
    note.hidden = state.token !== null || state.key === null;
    note.textContent = "Reveal the key above, and it is filled in here.";
    shown?.refresh();
  }

  /** @param {any} region */
  async function choose(region) {
    state.region = region;
    state.tip = null;
    if (shown === null) {
      shown = programs(site, state);
      fill(program, note, shown.element);
    }
    refresh();
    state.tip = await tipOf(region.url, signal);
    if (!signal.aborted) refresh();
  }

  const title = head(
    "Connect",
    "A key, a region and a program: all that a first transaction needs.",
  );
  const steps = el("div", { class: "steps" });
  steps.append(keySheet(usable, state, keyBox, signal, refresh));
  if (site.regions.length === 0) {
    const text = "Whoever runs this service has named no region yet (control.regions).";
    steps.append(sheet("Choose a region", empty("No regions", text)));
  } else {
    const table = regionTable(site.regions, signal, (region) => void choose(region));
    const text = "The round trip is measured from this browser: best of several tries.";
    steps.append(sheet("Choose a region", el("p", { class: "soft" }, text), table));
    steps.append(sheet("Send a transaction", program, next()));
  }
  fill(main, title, steps);
  if (state.region !== null) await choose(state.region);
}

/** Where to look once a program was run. */
function next() {
  const way = el("a", { href: "/transactions" }, "Transactions");
  return el("p", { class: "next" }, "Run it, then see what became of it: ", way, ".");
}

/**
 * @param {any[]} usable
 * @param {{key: any, token: string | null}} state
 * @param {HTMLElement} box
 * @param {AbortSignal} signal
 * @param {() => void} refresh
 */
function keySheet(usable, state, box, signal, refresh) {
  if (state.key === null) {
    const make = el("a", { class: "btn main", href: "/keys" }, "Make a key");
    return sheet(
      "Your key",
      empty("No key works now", "Each of them is revoked or expired.", make),
    );
  }
  let shown = new AbortController();
  const show = () => {
    shown.abort();
    shown = new AbortController();
    fill(
      box,
      reveal(state.key, AbortSignal.any([signal, shown.signal]), (token) => {
        state.token = token;
        refresh();
      }),
    );
  };
  show();
  const select = el(
    "select",
    { "aria-label": "Key" },
    usable.map(({ id, label, hint }) => el("option", { value: id }, `${label} (${hint})`)),
  );
  select.hidden = usable.length < 2;
  select.addEventListener("change", () => {
    state.key = usable.find(({ id }) => id === select.value) ?? state.key;
    show();
  });
  const text = "Whoever has it sends in your name. It goes into the header api-x-token.";
  return el(
    "section",
    { class: "sheet", "aria-label": "Your key" },
    el("div", { class: "sheet-head" }, el("h2", {}, "Your key"), select),
    box,
    el("p", { class: "small soft" }, text),
  );
}

/** What the region asks for; null when it does not answer. */
async function tipOf(/** @type {string} */ url, /** @type {AbortSignal} */ signal) {
  try {
    const answer = await fetch(`${url}/api/v1/tip`, { signal });
    return answer.ok ? await answer.json() : null;
  } catch {
    // The table of regions says already that it cannot be reached.
    return null;
  }
}

/**
 * @param {any} site
 * @param {{key: any, token: string | null, region: any, tip: any}} state
 */
function programs(site, state) {
  const filling = () => ({
    url: state.region.url.replace(/\/$/, ""),
    key: state.token ?? state.key?.hint ?? "YOUR-KEY",
    tipAccount: state.tip?.accounts[0] ?? "TIP-ACCOUNT",
    tipLamports: state.tip?.lamportsMin ?? 1_000_000,
    rpcUrl: site.examples?.rpc_url ?? null,
    exampleUrl: site.examples?.transaction_url ?? null,
    quic: state.region.quic,
  });
  const all = snippets(filling());
  return tabs("Programs", all, (name) => {
    const values = filling();
    const snippet = snippets(values).find((one) => one.name === name);
    if (snippet === undefined) return [];
    const { title, before, code } = snippet;
    const text = el("p", {}, before);
    if (code === null) return [text];
    const lines = code(values);
    const box = el(
      "div",
      { class: "code" },
      el(
        "pre",
        { tabindex: 0, role: "region", "aria-label": `Program for ${title}` },
        el("code", {}, lines),
      ),
      copyButton(`Copy the program for ${title}`, () => lines),
    );
    return [text, box, tipNote(state.tip)];
  });
}

/** @param {{accounts: string[], lamportsMin: number} | null} tip */
function tipNote(tip) {
  if (tip === null) return null;
  const { accounts, lamportsMin } = tip;
  return el(
    "details",
    {},
    el(
      "summary",
      {},
      `The tip: at least ${sol(lamportsMin)} to one of ${plural(accounts.length, "account")}`,
    ),
    el(
      "ul",
      {},
      accounts.map((account) => el("li", {}, el("code", { class: "break" }, account))),
    ),
  );
}
