/**
 * The account's keys: what each may do, when it was last used, and the actions on it. A key's text
 * is shown once when it is created; after that the Connect page reveals it.
 */

import { icon } from "../components/icons.js";
import {
  addPublicKey,
  changeKey,
  linkKey,
  makeKey,
  nameOf,
  revokeKey,
  rotateKey,
} from "../components/key-actions.js";
import { fact, pageHeader } from "../components/page-header.js";
import { empty, fillWith } from "../components/states.js";
import { announce } from "../lib/announce.js";
import { read } from "../lib/api.js";
import { el, fill } from "../lib/dom.js";
import { count, labelText, plural } from "../lib/format.js";
import { ago, agoAndFull } from "../lib/times.js";

const BADGES = { live: "good", expired: "warn", revoked: "bad" };
const STATES = { live: "Works", expired: "Expired", revoked: "Revoked" };

/** @param {import("../app.js").Context} context */
export async function page({ main, signal }) {
  const list = el("div");
  const make = button("Make a key", "btn main", () => act(makeKey, "The key is made"), "plus");
  make.dataset["act"] = "make";
  const link = button("Link a key", "btn", () => act(linkKey, "The key is linked"));
  const add = button("Add a public key", "btn", () => act(addPublicKey, "The key is added"));
  add.dataset["act"] = "add-public";
  const text =
    "One for each program or machine, so that each can be limited and revoked separately.";
  fill(main, pageHeader("Keys", text, link, add, make), list);

  const load = () =>
    fillWith(list, signal, async () => {
      const { keys } = await read("/api/v1/keys", signal);
      return cardsOf(keys, act);
    });

  /**
   * Runs an action on a key and shows the keys again.
   * @param {(key?: any) => Promise<unknown>} what answers null when it was called off
   * @param {string} done
   * @param {any} [key]
   */
  async function act(what, done, key) {
    const answer = await what(key);
    if (answer === null || signal.aborted) return;
    await load();
    announce(done);
  }

  await load();
}

/** @typedef {(what: (key: any) => Promise<unknown>, done: string, key: any) => void} Act */

/** @param {any[]} keys @param {Act} act */
function cardsOf(keys, act) {
  const live = keys.filter(({ state }) => state === "live");
  const ended = keys.filter(({ state }) => state !== "live");
  const none = el(
    "div",
    { class: "sheet" },
    empty("No key works now", "Make one: a program without a key is refused."),
  );
  return [
    ...(live.length === 0 ? [none] : live.map((key) => card(key, act))),
    ended.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `${plural(ended.length, "key")} that ended`),
        ended.map((key) => card(key, act)),
      ),
  ];
}

const ACTS = /** @type {const} */ ([
  ["Change", "btn", changeKey, "The key is changed"],
  ["Rotate", "btn", rotateKey, "The key is rotated"],
  ["Revoke", "btn danger", revokeKey, "The key is revoked"],
]);

/** @param {any} key @param {Act} act */
function card(key, act) {
  const { label, hint, state, expires_at, replaced_by: successor } = key;
  const badge = el("span", { class: `badge ${BADGES[/** @type {"live"} */ (state)]}` });
  badge.textContent = STATES[/** @type {"live"} */ (state)];
  const ending = state === "live" && expires_at !== null;
  const live = state === "live";
  const isApiKey = key.kind === "api_key";
  const named = (/** @type {string} */ what) => `${what} the key ${nameOf(key)}`;
  return el(
    "article",
    { class: live ? "key-card" : "key-card ended", "data-key": key.id },
    el(
      "header",
      {},
      el("h2", {}, labelText(label)),
      el("code", { class: "soft" }, isApiKey ? hint : key.public_key),
      badge,
    ),
    facts(key),
    successor !== null && el("p", {}, "Replaced by ", el("code", {}, successor.hint), "."),
    ending && el("p", { class: "small soft" }, "It works until it expires."),
    live &&
      el(
        "div",
        { class: "buttons" },
        ACTS.filter(([word]) => word !== "Rotate" || (successor === null && isApiKey)).map(
          ([word, kind, what, done]) => {
            const one = button(word, kind, () => act(what, done, key), null, named);
            one.dataset["act"] = `${word} ${key.id}`;
            return one;
          },
        ),
      ),
  );
}

/** @param {any} key */
function facts(key) {
  const { allowed_addresses: addresses, rate_per_second: rate, burst } = key;
  const limit = [
    rate !== null && `${plural(rate, "request")} a second`,
    burst !== null && `a burst of ${count(burst)}`,
  ].filter(Boolean);
  return el(
    "dl",
    { class: "facts" },
    fact("Last used", ...agoAndFull(key.last_used_at)),
    fact("Made", ago(key.created_at)),
    key.revoked_at === null
      ? fact("Expires", ...agoAndFull(key.expires_at))
      : fact("Revoked", ...agoAndFull(key.revoked_at)),
    fact("Limit", limit.length === 0 ? "The plan's" : limit.join(", ")),
    fact("From", addresses.length === 0 ? "Any address" : el("code", {}, addresses.join(" "))),
  );
}

/**
 * @param {string} text
 * @param {string} kind
 * @param {() => void} onclick
 * @param {string | null} [sign]
 * @param {(text: string) => string} [named] the whole name, for those who do not see what is around
 */
function button(text, kind, onclick, sign = null, named = (name) => name) {
  const attributes = { type: "button", class: kind, onclick, "aria-label": named(text) };
  return el("button", attributes, sign && icon(sign), text);
}
