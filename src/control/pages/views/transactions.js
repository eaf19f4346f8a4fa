/**
 * The receipt of a transaction by its signature; the latest transactions, and the latest rejected
 * submissions. The signature is in the URL, so that a receipt can be shared or bookmarked.
 */

import { CODE_INPUT } from "../components/fields.js";
import { pageHeader, sheet } from "../components/page-header.js";
import { receiptView } from "../components/receipt.js";
import { recentTransactions } from "../components/recent-transactions.js";
import {
  empty,
  errorNote,
  failed,
  fillWith,
  loading,
  unreachableNote,
} from "../components/states.js";
import { table } from "../components/table.js";
import { ApiError, read, readAlone } from "../lib/api.js";
import { after } from "../lib/clock.js";
import { el, fill } from "../lib/dom.js";
import { agoAndFull } from "../lib/times.js";

const AGAIN_MS = 2000;
const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{64,88}$/;

/** @param {import("../app.js").Context} context */
export async function page({ site, main, signal, go }) {
  const given = new URLSearchParams(location.search).get("signature") ?? "";
  const found = el("div", { "aria-live": "polite" });
  const latest = el("div");
  const refusals = el("div");
  const text = "Receipts are kept in memory for minutes by the region that took the transaction.";
  const form = search(given, go);
  fill(
    main,
    pageHeader("Transactions", text),
    el("section", { class: "sheet" }, form),
    found,
    latest,
    refusals,
  );
  await Promise.all([
    SIGNATURE.test(given) ? lookUp(given, site, found, signal) : null,
    recentTransactions(latest, signal),
    latestRefusals(refusals, signal),
  ]);
}

/** @param {string} given @param {(path: string) => void} go */
function search(given, go) {
  const named = { type: "text", name: "signature", id: "signature", value: given };
  const input = el("input", { ...CODE_INPUT, ...named });
  const fault = el("p", { class: "wrong", id: "signature-wrong", role: "alert" });
  const form = el(
    "form",
    { role: "search" },
    el(
      "div",
      { class: "inline" },
      el("div", { class: "field" }, el("label", { for: "signature" }, "Signature"), input),
      el("button", { class: "btn main" }, "Look up"),
    ),
    fault,
  );
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const signature = input.value.trim();
    if (SIGNATURE.test(signature)) {
      go(`/transactions?signature=${signature}`);
      return;
    }
    fault.textContent = `A signature has 64 to 88 characters of base58, this has ${signature.length}.`;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", "signature-wrong");
    input.focus();
  });
  return form;
}

/**
 * Shows the receipts of one transaction, and polls while its outcome is unknown: one request for
 * all regions that accepted it. What a response does not change stays, opened tables included. A
 * poll without a response is noted above the receipts, and repeated.
 * @param {string} signature
 * @param {any} site
 * @param {HTMLElement} place
 * @param {AbortSignal} signal
 */
async function lookUp(signature, site, place, signal) {
  let shown = "";
  const notice = el("div");
  fill(place, loading("Asking the regions", 1));

  async function load(ask = read) {
    try {
      const answer = await ask(`/api/v1/transactions/${signature}`, signal);
      const { receipts, unreachable } = answer;
      fill(notice);
      if (receipts.some(isOpen)) after(AGAIN_MS, () => void load(readAlone), signal);
      const text = JSON.stringify(answer);
      if (text === shown) return;
      shown = text;
      const views = receipts.map((/** @type {any} */ { edge, receipt }) =>
        receiptView(edge, receipt, site.explorer_url, signal),
      );
      fill(place, notice, unreachableNote(unreachable), views);
    } catch (error) {
      if (signal.aborted) return;
      const note = shown === "" ? null : noResponse(error);
      if (note !== null) {
        // A screen reader reads each change out, so an equal note is not set again.
        if (notice.textContent !== note.textContent) fill(notice, note);
        after(AGAIN_MS, () => void load(readAlone), signal);
        return;
      }
      shown = "";
      fill(
        place,
        noReceipt(error, () => void load()),
      );
    }
  }
  await load();
}

/** @param {any} taken receipt of a region */
function isOpen({ receipt: { landing } }) {
  return landing.state === "in_flight" || landing.state === "processed";
}

/** A note that the server or a region did not respond; null: other errors. @param {unknown} error */
function noResponse(error) {
  if (!(error instanceof ApiError)) return null;
  // 0: no response; 429: others at this address ask too; above 500: of a proxy, or no database.
  if ([0, 429].includes(error.status) || error.status > 500) return errorNote(error);
  return unreachableNote(error.fields["unreachable"] ?? []);
}

/** Why there is no receipt. @param {unknown} error @param {() => void} again */
function noReceipt(error, again) {
  const missing = error instanceof ApiError && error.reason === "not_found";
  if (!missing) return [el("div", { class: "sheet" }, failed(error, again))];
  const text = "It was not sent with this account's keys, or so long ago that it is forgotten.";
  const unreachable = error.fields["unreachable"] ?? [];
  const which = unreachable.length === 0 ? "No region" : "No region that responded";
  const none = empty(`${which} knows this transaction`, text);
  return [unreachableNote(unreachable), el("div", { class: "sheet" }, none)];
}

/** @param {HTMLElement} place @param {AbortSignal} signal */
function latestRefusals(place, signal) {
  const title = "Latest refusals";
  async function content() {
    const { refusals, unreachable } = await read("/api/v1/refusals", signal);
    const text =
      unreachable.length === 0
        ? "Nothing was refused since the regions started."
        : "None in the regions that responded.";
    const none = el("p", { class: "soft" }, text);
    const list = refusals.length === 0 ? none : refusalTable(title, refusals);
    return sheet(title, unreachableNote(unreachable), list);
  }
  return fillWith(place, signal, content, (state) => sheet(title, state));
}

/** @param {string} title @param {any[]} refusals */
function refusalTable(title, refusals) {
  const columns = [
    { title: "When", cell: (/** @type {any} */ row) => agoAndFull(row.at) },
    { title: "Region", cell: (/** @type {any} */ row) => row.edge },
    { title: "Reason", cell: (/** @type {any} */ row) => el("code", {}, row.reason) },
    { title: "What was found", cell: (/** @type {any} */ row) => row.message },
  ];
  return table(title, columns, refusals, { stack: true });
}
