/**
 * The account's latest transactions from all regions, newest first, optionally filtered by state.
 * The list refreshes automatically, except while the user is focused inside it. A refresh without a
 * response is noted above it, and repeated.
 */

import { ApiError, read, readAlone } from "../lib/api.js";
import { every } from "../lib/clock.js";
import { el, fill } from "../lib/dom.js";
import { count, ends, micros, NONE, plural, sol } from "../lib/format.js";
import { FILTERS, stateBadge } from "../lib/receipt-states.js";
import { ago } from "../lib/times.js";
import { segments, sheetWith } from "./page-header.js";
import { empty, errorNote, failed, loading, unreachableNote } from "./states.js";
import { table } from "./table.js";

const TITLE = "Latest transactions";
const AGAIN_MS = 4000;
const FEW = 20;
const MANY = 100;

/** @param {HTMLElement} place @param {AbortSignal} signal */
export function recentTransactions(place, signal) {
  const wished = new URLSearchParams(location.search).get("show");
  let filter = FILTERS.find(([name]) => name === wished) ?? FILTERS[0];
  let limit = FEW;
  let asked = 0;
  let shown = "";
  const body = el("div", {}, loading("Loading the latest transactions", 1));
  const notice = el("div", { role: "status" });
  const choices = FILTERS.map(([name, title]) => /** @type {const} */ ([name, title]));
  const choice = segments("Which transactions", choices, filter[0], choose);
  fill(place, sheetWith(TITLE, choice, notice, body));

  function choose(/** @type {string} */ name) {
    filter = FILTERS.find(([known]) => known === name) ?? FILTERS[0];
    limit = FEW;
    // So that a reload or a shared link shows the same filter.
    const query = new URLSearchParams(location.search);
    if (filter[2] === "") query.delete("show");
    else query.set("show", name);
    const text = query.toString();
    history.replaceState(null, "", location.pathname + (text === "" ? "" : `?${text}`));
    void load();
  }

  function showMore() {
    limit = MANY;
    void load();
  }

  async function load(ask = read) {
    asked += 1;
    const mine = asked;
    const query = new URLSearchParams({ limit: String(limit) });
    if (filter[2] !== "") query.set("state", filter[2]);
    try {
      const answer = await ask(`/api/v1/transactions?${query}`, signal);
      const text = JSON.stringify([filter, answer]);
      if (mine !== asked) return;
      fill(notice);
      if (text === shown) return;
      shown = text;
      fill(body, contentOf(answer, filter, limit, showMore));
    } catch (error) {
      if (signal.aborted || mine !== asked) return;
      if (ask === readAlone && mayAnswer(error)) {
        const note = errorNote(error);
        // A screen reader reads each change out, so an equal note is not set again.
        if (notice.textContent !== note.textContent) fill(notice, note);
        return;
      }
      fill(notice);
      shown = "";
      fill(
        body,
        failed(error, () => void load()),
      );
    }
  }

  every(
    AGAIN_MS,
    () => {
      const inUse = body.contains(document.activeElement) || shown === "";
      if (!document.hidden && !inUse) void load(readAlone);
    },
    signal,
  );
  return load();
}

/** Whether the next refresh may get what this one did not. @param {unknown} error */
function mayAnswer(error) {
  return error instanceof ApiError && error.reason !== "unauthorized";
}

/**
 * @param {{transactions: any[], more: boolean, unreachable: string[]}} answer
 * @param {(typeof FILTERS)[number]} filter
 * @param {number} limit
 * @param {() => void} showMore
 */
function contentOf({ transactions, more, unreachable }, filter, limit, showMore) {
  const further =
    more &&
    (limit < MANY
      ? el("button", { type: "button", class: "btn", onclick: showMore }, `Show up to ${MANY}`)
      : el("p", { class: "small soft" }, "Older ones are looked up by their signature."));
  return [
    unreachableNote(unreachable),
    transactions.length === 0 ? nothing(filter, unreachable.length === 0) : listOf(transactions),
    further && el("div", { class: "buttons" }, further),
  ];
}

/** @param {(typeof FILTERS)[number]} filter @param {boolean} allAnswered */
function nothing([name], allAnswered) {
  if (!allAnswered) return el("p", { class: "soft" }, "None in the regions that responded.");
  if (name !== "all") return el("p", { class: "soft" }, "None of the transactions that are kept.");
  const text = "What you send appears here automatically, with its outcome.";
  return empty(
    "Nothing was sent lately",
    text,
    el("a", { class: "btn main", href: "/connect" }, "Send one"),
  );
}

/** @param {any[]} transactions */
function listOf(transactions) {
  /** @type {import("./table.js").Column<any>[]} */
  const columns = [
    {
      title: "Signature",
      cell: ({ signature }) =>
        el(
          "a",
          { href: `/transactions?signature=${signature}`, title: signature, class: "mono" },
          ends(signature, 8, 8),
        ),
    },
    { title: "State", cell: stateBadge },
    { title: "Sent", cell: ({ received_at }) => ago(received_at) },
    { title: "Slot", number: true, cell: slotOf },
    {
      title: "On the wire",
      number: true,
      cell: ({ timings }) => micros(timings.first_sent_us),
    },
    { title: "Tip", number: true, cell: ({ tip_lamports }) => sol(tip_lamports) },
    { title: "Region", cell: ({ edge }) => edge },
  ];
  return table(TITLE, columns, transactions, { stack: true, dense: true });
}

/** The slot, and the number of slots since receipt. @param {any} transaction */
function slotOf({ received_slot, landing: { slot, slots } }) {
  if (slot === null) return NONE;
  if (slots === null) return count(slot);
  const same = slot < received_slot ? "before it came" : "the same slot";
  const delta = slots === 0 ? same : `${plural(slots, "slot")} later`;
  return [count(slot), el("span", { class: "sub" }, delta)];
}
