/**
 * The audit log of this account: actions, actors and sources, newest first.
 */

import { pageHeader } from "../components/page-header.js";
import { empty, errorText } from "../components/states.js";
import { table } from "../components/table.js";
import { read } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { absolute, agoAndFull } from "../lib/times.js";

/** @type {Record<string, string>} */
const ACTIONS = {
  "account.register": "Account made by a first login",
  "account.create": "Account made",
  "account.rename": "Account renamed",
  "account.plan": "Plan changed",
  "account.disable": "Account disabled",
  "account.enable": "Account enabled",
  "account.admin": "Operator's right changed",
  "key.create": "Key made",
  "key.change": "Key changed",
  "key.rotate": "Key rotated",
  "key.revoke": "Key revoked",
  "key.reveal": "Key revealed",
  "key.link": "Key linked",
  "key.link_refused": "Linking a key refused",
  "key.moved": "Key moved to another account",
  "session.login": "Logged in",
  "session.renew": "Logged in again",
  "session.logout": "Logged out",
  "session.end": "Session ended",
  "session.end_all": "Logged out everywhere",
  "token.create": "Management token made",
  "token.revoke": "Management token revoked",
};
/** @type {Record<string, string>} */
const ACTORS = {
  account: "You",
  token: "A management token",
  operator: "The operator",
  system: "The service",
};

/**
 * How browsers identify themselves; those that also name others come first.
 * @type {readonly (readonly [RegExp, string])[]}
 */
const BROWSERS = [
  [/Edg(?:A|iOS)?\/(\d+)/, "Edge"],
  [/OPR\/(\d+)/, "Opera"],
  [/SamsungBrowser\/(\d+)/, "Samsung Internet"],
  [/(?:Firefox|FxiOS)\/(\d+)/, "Firefox"],
  [/(?:Chrome|CriOS)\/(\d+)/, "Chrome"],
  [/Version\/(\d+)/, "Safari"],
];
/** Android names Linux as well, iPhones name Mac OS X. */
const SYSTEMS = ["Android", "iPhone", "iPad", "Windows", "CrOS", "Mac OS X", "Linux"];

/** @param {import("../app.js").Context} context */
export async function page({ main, signal }) {
  /** @type {any[]} */
  const entries = [];
  /** @type {string | null} */
  let next = null;
  const body = el("section", { class: "sheet", "aria-label": "Entries" });
  const more = el("button", { type: "button", class: "btn" }, "Show older ones");
  const fault = el("p", { class: "wrong", role: "alert" });
  const text = "Everything that was done to this account, its keys and its logins.";

  async function load() {
    const query = next === null ? "" : `&after=${encodeURIComponent(next)}`;
    const answer = await read(`/api/v1/audit?limit=50${query}`, signal);
    entries.push(...answer.entries);
    next = answer.next;
    more.hidden = next === null;
    fill(body, entries.length === 0 ? empty("Nothing yet", text) : tableOf(entries));
  }

  more.addEventListener("click", async () => {
    more.disabled = true;
    fault.textContent = "";
    try {
      await load();
    } catch (error) {
      if (!signal.aborted) fault.textContent = errorText(error);
    }
    more.disabled = false;
  });
  await load();
  fill(main, pageHeader("Audit", text), body, fault, more);
}

/** @param {any[]} entries */
function tableOf(entries) {
  return table(
    "Audit",
    [
      { title: "When", cell: (entry) => agoAndFull(entry.at) },
      {
        title: "What",
        cell: (entry) => [
          ACTIONS[entry.action] ?? entry.action,
          el("span", { class: "sub break" }, detailOf(entry.detail)),
        ],
      },
      { title: "By", cell: (entry) => ACTORS[entry.actor] ?? entry.actor },
      {
        title: "From",
        cell: (entry) => [
          entry.address ?? "–",
          entry.user_agent !== null && el("span", { class: "sub" }, browserOf(entry.user_agent)),
        ],
      },
    ],
    entries,
    { stack: true },
  );
}

/**
 * The details of an entry in words, without ids. The value before a change comes before the present
 * one.
 * @param {Record<string, unknown>} detail
 * @returns {string}
 */
function detailOf({ was, ...detail }) {
  const before = isRecord(was) ? was : {};
  return Object.entries(detail)
    .filter(([name, value]) => !/Id$/i.test(name) && (isSome(value) || isSome(before[name])))
    .map(([name, value]) => {
      const [now, earlier] = [value, before[name]].map((each) => shown(name, each));
      const from = name in before && earlier !== now ? `${earlier} → ` : "";
      return `${wordsOf(name)} ${from}${now}`;
    })
    .join(", ");
}

/** `overlapMs` is "overlap", `ratePerSecond` "rate per second". @param {string} name */
function wordsOf(name) {
  const plain = name.replace(/(?:At)?Ms$/, "").replaceAll("_", " ");
  return plain.replaceAll(/([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** @param {string} name @param {unknown} value @returns {string} */
function shown(name, value) {
  if (!isSome(value)) return "none";
  if (typeof value === "number" && name.endsWith("AtMs")) {
    return absolute(new Date(value).toISOString());
  }
  if (typeof value === "number" && name.endsWith("Ms")) return span(value);
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((one) => shown("", one)).join(" ");
  return isRecord(value) ? `(${detailOf(value)})` : JSON.stringify(value);
}

/** @param {number} ms */
function span(ms) {
  const hours = ms / 3_600_000;
  if (hours >= 24) return plural(Math.round(hours / 24), "day");
  return hours >= 1 ? plural(Math.round(hours), "hour") : plural(Math.round(ms / 1000), "second");
}

/** @param {unknown} value */
function isSome(value) {
  return value !== null && value !== undefined && value !== "" && !isEmptyList(value);
}

/** @param {unknown} value */
function isEmptyList(value) {
  return Array.isArray(value) && value.length === 0;
}

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The browser and the operating system of a `User-Agent`, as far as recognized.
 * @param {string} text
 */
export function browserOf(text) {
  const browser = BROWSERS.map(([sign, name]) => [name, sign.exec(text)?.[1]]).find(
    ([, version]) => version !== undefined,
  );
  if (browser === undefined) return text.slice(0, 40);
  const system = SYSTEMS.find((name) => text.includes(name));
  return system === undefined ? browser.join(" ") : `${browser.join(" ")}, ${system}`;
}
