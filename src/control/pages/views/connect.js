/**
 * The first transaction: the key, the region nearest to this browser, and a program to paste,
 * filled in with both.
 */

import { pageHeader, sheet, sheetWith } from "../components/page-header.js";
import { programs } from "../components/programs.js";
import { regionTable } from "../components/regions.js";
import { reveal } from "../components/reveal.js";
import { empty } from "../components/states.js";
import { read } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { labelText } from "../lib/format.js";

/** @param {import("../app.js").Context} context */
export async function page({ site, main, signal }) {
  const { keys } = await read("/api/v1/keys", signal);
  const usable = keys.filter(
    (/** @type {any} */ { kind, state }) => kind === "api_key" && state === "live",
  );
  /** @type {import("../components/programs.js").State} */
  const state = {
    key: usable[0] ?? null,
    token: null,
    region: site.regions[0] ?? null,
    tip: null,
    tipAsked: false,
  };
  const program = el("div");
  /** @type {ReturnType<typeof programs> | null} */
  let shown = null;
  const key = keySheet(usable, state, signal, () => shown?.refresh());

  /** @param {any} region */
  async function choose(region) {
    state.region = region;
    state.tip = null;
    state.tipAsked = false;
    if (shown === null) {
      shown = programs(site, state, key.ask);
      fill(program, shown.element);
    } else {
      shown.refresh();
    }
    const tip = await tipOf(region.url, signal);
    if (signal.aborted || state.region !== region) return;
    state.tip = tip;
    state.tipAsked = true;
    shown.refresh();
  }

  const title = pageHeader(
    "Connect",
    "A key, a region and a program: all that a first transaction needs.",
  );
  const steps = el("div", { class: "steps" });
  steps.append(key.element);
  if (site.regions.length === 0) {
    const text = "Whoever runs this service has named no region yet (control.regions).";
    steps.append(sheet("Choose a region", empty("No regions", text)));
  } else {
    const table = regionTable(site.regions, signal, (region) => void choose(region));
    const text = "The round trip is measured from this browser: the best of several attempts.";
    steps.append(sheet("Choose a region", el("p", { class: "soft" }, text), table));
    steps.append(sheet("Send a transaction", program, next()));
  }
  fill(main, title, steps);
  // Not awaited: a region that does not respond leaves the browser waiting for its tip.
  if (state.region !== null) void choose(state.region);
}

/** Where to look after running a program. */
function next() {
  const way = el("a", { href: "/transactions" }, "Transactions");
  return el("p", { class: "next" }, "Run it, then see what became of it: ", way, ".");
}

/**
 * @param {any[]} usable
 * @param {import("../components/programs.js").State} state
 * @param {AbortSignal} signal
 * @param {() => void} refresh
 * @returns {{element: HTMLElement, ask: () => void}} `ask` reveals the key like its button
 */
function keySheet(usable, state, signal, refresh) {
  if (state.key === null) {
    const make = el("a", { class: "btn main", href: "/keys" }, "Make a key");
    const none = empty("No key works now", "Each of them is revoked or expired.", make);
    return { element: sheet("Your key", none), ask() {} };
  }
  const box = el("div");
  let leave = new AbortController();
  let ask = () => {};
  const show = () => {
    leave.abort();
    leave = new AbortController();
    const shown = reveal(state.key, AbortSignal.any([signal, leave.signal]), (token) => {
      state.token = token;
      refresh();
    });
    ask = shown.ask;
    fill(box, shown.element);
  };
  show();
  const select = el(
    "select",
    { "aria-label": "Key" },
    usable.map(({ id, label, hint }) =>
      el("option", { value: id }, `${labelText(label)} (${hint})`),
    ),
  );
  select.hidden = usable.length < 2;
  select.addEventListener("change", () => {
    state.key = usable.find(({ id }) => id === select.value) ?? state.key;
    show();
    refresh();
  });
  const text = "Whoever has it sends in your name. It goes into the header api-x-token.";
  const element = sheetWith("Your key", select, box, el("p", { class: "small soft" }, text));
  return { element, ask: () => ask() };
}

/** The tip that the region needs; null when it does not respond. */
async function tipOf(/** @type {string} */ url, /** @type {AbortSignal} */ signal) {
  try {
    const answer = await fetch(`${url}/api/v1/tip`, { signal });
    return answer.ok ? await answer.json() : null;
  } catch {
    // The table of regions already shows that it is unreachable.
    return null;
  }
}
