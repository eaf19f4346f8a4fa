/**
 * For operators: all accounts, their plans, and whether they are disabled; and the cluster as each
 * edge sees it. Every change is written to the audit log of that account.
 */

import { ask } from "../components/dialog.js";
import { selectField, textOf } from "../components/fields.js";
import { pageHeader, sheet } from "../components/page-header.js";
import { empty, errorText, failed, fillWith, loading } from "../components/states.js";
import { table } from "../components/table.js";
import { announce } from "../lib/announce.js";
import { patch, read } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { count, millis, plural, share } from "../lib/format.js";
import { ago, agoAndFull } from "../lib/times.js";

/** @param {import("../app.js").Context} context */
export async function page({ main, signal }) {
  const { plans } = await read("/api/v1/admin/plans", signal);
  const sums = el("span", {}, "Adding up the numbers of the last day.");
  const planned = el("div", {}, planSheet(plans));
  const { element, shown } = accounts(plans, signal, () => void showPlans(planned, signal));
  const { element: cluster, shown: clusterShown } = clusterSheet(signal);
  fill(main, pageHeader("Operator", sums), element, planned, cluster);
  // Over very many keys this takes long, or fails; the rest is needed then too.
  void lastDay(signal).then((text) => fill(sums, text));
  await Promise.all([shown, clusterShown]);
}

/** The numbers of the last day in a sentence, or why there are none. @param {AbortSignal} signal */
async function lastDay(signal) {
  try {
    const { totals } = await read("/api/v1/admin/usage?range=day", signal);
    return (
      `In the last day over all accounts: ${plural(totals.accepted, "transaction")} sent, ` +
      `${share(totals.landed_share)} landed, ${count(totals.refused)} refused.`
    );
  } catch (error) {
    if (signal.aborted) return "";
    return `The numbers of the last day are missing. ${errorText(error)}`;
  }
}

/**
 * The search text is in the URL, so that it survives a login in between.
 * @param {any[]} plans
 * @param {AbortSignal} signal
 * @param {() => void} onChange called after each change of an account
 * @returns {{element: HTMLElement, shown: Promise<void>}} `shown`: once the accounts are shown
 */
function accounts(plans, signal, onChange) {
  const value = new URLSearchParams(location.search).get("query") ?? "";
  const attributes = { type: "search", id: "search", maxlength: 128, autocomplete: "off", value };
  const input = el("input", attributes);
  const list = el("div", { "aria-live": "polite" });
  const more = el("button", { type: "button", class: "btn", hidden: true }, "Show more");
  /** @type {any[]} */
  let shown = [];
  /** @type {string | null} */
  let next = null;
  /** The text that the shown accounts were found by. */
  let searched = "";
  let asked = 0;

  /** @param {boolean} further */
  async function load(further) {
    asked += 1;
    const mine = asked;
    more.disabled = true;
    if (!further) searched = input.value.trim();
    const query = new URLSearchParams({ query: searched });
    if (further && next !== null) query.set("after", next);
    try {
      const answer = await read(`/api/v1/admin/accounts?${query}`, signal);
      if (mine !== asked) return;
      shown = further ? [...shown, ...answer.accounts] : answer.accounts;
      next = answer.next;
      more.hidden = next === null;
      more.disabled = false;
      show();
    } catch (error) {
      if (signal.aborted || mine !== asked) return;
      more.hidden = true;
      fill(
        list,
        failed(error, () => void load(further)),
      );
    }
  }

  function show() {
    const none = empty("No account is like that", "Try a part of a name or an address.");
    fill(list, shown.length === 0 ? none : accountTable(shown, plans, changed));
  }

  /** After a change the user keeps their position in a long list. @param {any} account */
  function changed(account) {
    shown = shown.map((each) => (each.id === account.id ? { ...each, ...account } : each));
    show();
    onChange();
  }

  more.addEventListener("click", () => void load(true));
  const form = el(
    "form",
    { class: "inline", role: "search" },
    el("div", { class: "field" }, el("label", { for: "search" }, "Name, login or id"), input),
    el("button", { class: "btn" }, "Search"),
  );
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    const query = wanted === "" ? "" : `?${new URLSearchParams({ query: wanted })}`;
    history.replaceState(null, "", location.pathname + query);
    void load(false);
  });
  return { element: sheet("Accounts", form, list, more), shown: load(false) };
}

/** @param {any[]} rows @param {any[]} plans @param {(account: any) => void} changed */
function accountTable(rows, plans, changed) {
  /** @type {import("../components/table.js").Column<any>[]} */
  const columns = [
    {
      title: "Account",
      cell: ({ name, contact, disabled, rights }) => [
        name,
        contact !== null && contact !== name && el("span", { class: "sub" }, contact),
        disabled && el("span", { class: "badge bad" }, "Disabled"),
        rights.includes("admin") && el("span", { class: "badge" }, "Operator"),
      ],
    },
    { title: "Plan", cell: ({ plan }) => plan },
    { title: "Keys", number: true, cell: ({ keys }) => count(keys) },
    { title: "Last used", cell: ({ last_used_at }) => ago(last_used_at) },
    { title: "Since", cell: ({ created_at }) => agoAndFull(created_at) },
    { title: "Change", cell: (account) => changes(account, plans, changed) },
  ];
  return table("Accounts", columns, rows, { stack: true });
}

/** @param {any} account @param {any[]} plans @param {(account: any) => void} changed */
function changes(account, plans, changed) {
  const { id, name, disabled } = account;
  const path = `/api/v1/admin/accounts/${id}`;
  const plan = el("button", { type: "button", class: "btn", "data-act": `plan ${id}` }, "Plan");
  plan.setAttribute("aria-label", `Change the plan of ${name}`);
  plan.addEventListener("click", async () => {
    const options = plans.map((one) => /** @type {[string, string]} */ ([one.name, one.name]));
    const done = await ask({
      title: `Plan of ${name}`,
      content: [selectField("Plan", "plan", options, account.plan, "It holds within a second.")],
      button: "Change the plan",
      act: (form) => patch(path, { plan: textOf(form, "plan") }),
    });
    if (done !== null) ended("The plan is changed", done);
  });
  const word = disabled ? "Enable" : "Disable";
  const kind = disabled ? "btn" : "btn danger";
  const named = { "aria-label": `${word} ${name}`, "data-act": `turn ${id}` };
  const turn = el("button", { type: "button", class: kind, ...named }, word);
  turn.addEventListener("click", async () => {
    const text = disabled
      ? "Its keys work again, and its people can log in."
      : "Its keys are refused within a second, and its sessions end.";
    const done = await ask({
      title: `${word} ${name}?`,
      content: [el("p", {}, text)],
      button: word,
      danger: !disabled,
      act: () => patch(path, { disabled: !disabled }),
    });
    if (done !== null) ended(disabled ? "The account is enabled" : "The account is disabled", done);
  });

  function ended(/** @type {string} */ text, /** @type {any} */ done) {
    announce(errorText(text));
    changed(done.account);
  }
  return el("span", { class: "buttons" }, plan, turn);
}

/** Shows how many accounts each plan has now. @param {Element} place @param {AbortSignal} signal */
function showPlans(place, signal) {
  const content = async () => planSheet((await read("/api/v1/admin/plans", signal)).plans);
  return fillWith(place, signal, content, (state) => sheet("Plans", state));
}

/** @param {any[]} plans */
function planSheet(plans) {
  /** @type {import("../components/table.js").Column<any>[]} */
  const columns = [
    { title: "Plan", cell: ({ name }) => name },
    { title: "Accounts", number: true, cell: ({ accounts: number }) => count(number) },
    { title: "Requests a second", number: true, cell: (plan) => count(plan.rate_per_second) },
    { title: "Burst", number: true, cell: ({ burst }) => count(burst) },
    { title: "Holds", cell: ({ shared }) => (shared ? "for all edges" : "for each edge") },
  ];
  return sheet("Plans", table("Plans", columns, plans, { stack: true }));
}

/** @type {Readonly<Record<string, string>>} */
const CONSENSUS = { tower_bft: "Tower BFT", alpenglow: "Alpenglow", unknown: "Not known" };

/**
 * The edges are asked when the page opens; one that does not answer is named.
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, shown: Promise<void>}} `shown`: once the answers are shown
 */
function clusterSheet(signal) {
  const body = el("div", { "aria-live": "polite" }, loading("Asking the edges", 2));
  const shown = fillWith(body, signal, async () => {
    const { edges, unreachable } = await read("/api/v1/admin/cluster", signal);
    const none = empty("No edge is configured", "control.edges names the edges to ask.");
    const absent = unreachable.map((/** @type {string} */ edge) => ({ edge, slot: null }));
    const rows = [...edges, ...absent];
    return rows.length === 0 ? none : clusterTable(rows);
  });
  return { element: sheet("Cluster", body), shown };
}

/** @param {any[]} rows without a consensus: the edge did not answer */
function clusterTable(rows) {
  /** @type {import("../components/table.js").Column<any>[]} */
  const columns = [
    {
      title: "Edge",
      cell: ({ edge, consensus }) => [
        edge,
        consensus === undefined && el("span", { class: "badge bad" }, "Does not answer"),
      ],
    },
    { title: "Consensus", cell: ({ consensus }) => CONSENSUS[consensus] ?? "" },
    { title: "Slot", number: true, cell: ({ slot }) => (slot === null ? "" : count(slot)) },
    { title: "Slot time", number: true, cell: ({ slot_ms: ms }) => (ms ? millis(ms) : "") },
    {
      title: "Confirmation",
      cell: ({ confirmation_stalled: isStalled }) => {
        if (isStalled === undefined) return "";
        return isStalled ? el("span", { class: "badge warn" }, "Stands still") : "Advances";
      },
    },
  ];
  return table("Cluster", columns, rows, { stack: true });
}
