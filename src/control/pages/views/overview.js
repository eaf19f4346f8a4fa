/**
 * The account's usage over an hour, a day or a month, for all regions and keys or for one; live
 * while the page is open. The event stream covers the last hour over everything; any other
 * selection is fetched again when the stream reports a change.
 */

import { plotsAhead } from "../components/chart.js";
import { pageHeader, segments } from "../components/page-header.js";
import { empty, failed, loading, sessionEnded } from "../components/states.js";
import { stats } from "../components/stats.js";
import { read, readAlone } from "../lib/api.js";
import { every, now } from "../lib/clock.js";
import { el, fill } from "../lib/dom.js";
import { listen } from "../lib/event-stream.js";
import { ago } from "../lib/times.js";

const RANGES = /** @type {const} */ ([
  ["hour", "Hour"],
  ["day", "Day"],
  ["month", "Month"],
]);
/** States of the event stream: with many pages open, the surplus ones poll instead. */
const STATES = /** @type {const} */ ({
  live: ["Live", "good"],
  stale: ["Not updated", "warn"],
  lost: ["Reconnecting", "warn"],
  full: ["Every 10 s", ""],
  ended: ["Logged out", "bad"],
});
/** Minimum interval between fetches of what the stream does not cover. */
const REFRESH_MS = 10_000;

/** @param {import("../app.js").Context} context */
export function page({ main, signal }) {
  plotsAhead();
  const choice = { range: "hour", region: "", key: "" };
  const body = el("div", {}, loading("Loading the numbers", 4));
  const state = el("span", { class: "badge", role: "status" }, "Connecting");
  const since = el("span", { class: "small soft" });
  const regions = picker("Region", "All regions", (value) => choose("region", value));
  const keys = picker("Key", "All keys", (value) => choose("key", value));
  const ranges = segments("Range", RANGES, "hour", (value) => choose("range", value));
  const title = pageHeader("Overview", null, state, since, regions.field, keys.field, ranges);
  const notice = el("div", { class: "notice", role: "alert" });
  fill(main, title, notice, body);

  /** @type {ReturnType<typeof stats> | null} */
  let shown = null;
  let stale = false;
  let polls = false;
  let asked = 0;
  /** @type {import("../lib/event-stream.js").LiveState | null} */
  let was = null;

  const plain = () => choice.range === "hour" && choice.region === "" && choice.key === "";

  function choose(/** @type {"range" | "region" | "key"} */ what, /** @type {string} */ value) {
    choice[what] = value;
    void load();
  }

  /** @param {any} usage */
  function show(usage) {
    regions.offer(usage.regions.map((/** @type {any} */ { region }) => [region, region]));
    keys.offer(
      usage.keys.map((/** @type {any} */ { key_id, label, hint }) => [key_id, `${label} ${hint}`]),
    );
    if (plain() && usage.totals.requests === 0) {
      shown = null;
      fill(body, nothing());
      return;
    }
    if (shown === null) {
      shown = stats(signal);
      fill(body, shown.element);
    }
    shown.show(usage);
  }

  async function load(ask = read) {
    asked += 1;
    const mine = asked;
    const query = new URLSearchParams({ range: choice.range });
    if (choice.region !== "") query.set("region", choice.region);
    if (choice.key !== "") query.set("key", choice.key);
    body.setAttribute("aria-busy", "true");
    try {
      const usage = await ask(`/api/v1/usage?${query}`, signal);
      if (mine === asked) show(usage);
    } catch (error) {
      if (signal.aborted || mine !== asked) return;
      shown = null;
      fill(
        body,
        failed(error, () => void load()),
      );
    } finally {
      if (mine === asked) body.removeAttribute("aria-busy");
    }
  }

  listen(signal, {
    onUsage(usage) {
      if (plain()) show(usage);
      else stale = true;
    },
    onState(name, at) {
      polls = name === "full";
      // A connection that was live until now had current numbers.
      const currentAt = name === "lost" && was === "live" ? new Date(now()).toISOString() : at;
      if (name !== "lost" || was === "live") showSince(since, currentAt ?? null);
      was = name;
      const [text, kind] = STATES[name];
      if (state.textContent !== text) state.textContent = text;
      state.className = `badge ${kind}`;
      if (name !== "ended") return;
      // The numbers belong to an account that is no longer logged in.
      asked += 1;
      shown = null;
      fill(body);
      fill(notice, sessionEnded());
    },
  });
  every(
    REFRESH_MS,
    () => {
      if (!stale && !polls) return;
      stale = false;
      void load(readAlone);
    },
    signal,
  );
  return load();
}

/** The time of the last update. @param {Element} place @param {string | null} iso */
function showSince(place, iso) {
  fill(place, iso !== null && ["Last updated ", ago(iso)]);
}

/**
 * A selection list, which grows with the names in the numbers.
 * @param {string} label
 * @param {string} all
 * @param {(value: string) => void} onChange
 */
function picker(label, all, onChange) {
  const onchange = () => onChange(select.value);
  const select = el("select", { "aria-label": label, onchange }, el("option", { value: "" }, all));
  return {
    field: select,
    /** @param {[string, string][]} options value and label */
    offer(options) {
      const known = new Set([...select.options].map(({ value }) => value));
      for (const [value, text] of options) {
        if (!known.has(value)) select.append(el("option", { value }, text));
      }
      select.hidden = select.options.length < 3;
    },
  };
}

function nothing() {
  return el(
    "div",
    { class: "sheet" },
    empty(
      "Nothing was sent in the last hour",
      "The numbers appear here within a minute of the first transaction, and go on by themselves.",
      el("a", { class: "btn main", href: "/connect" }, "Send one"),
    ),
  );
}
