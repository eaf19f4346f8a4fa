/**
 * The frame around every page: the product name, the navigation, the colour scheme, and the
 * logged-in account.
 */

import { announce } from "../lib/announce.js";
import { el, fill } from "../lib/dom.js";
import { logOut } from "../lib/session.js";
import { tell } from "./dialog.js";
import { icon } from "./icons.js";
import { errorNote } from "./states.js";

/** Pages in navigation order. */
export const PAGES = [
  { name: "overview", title: "Overview" },
  { name: "connect", title: "Connect" },
  { name: "keys", title: "Keys" },
  { name: "transactions", title: "Transactions" },
  { name: "plan", title: "Plan" },
  { name: "audit", title: "Audit" },
  { name: "account", title: "Account" },
];
export const ADMIN_PAGE = { name: "admin", title: "Operator" };

/** The account shown while the server cannot return the logged-in one. */
export const UNNAMED = { rights: [], people: [], account: { name: "" } };

const SCHEMES = ["system", "light", "dark"];

/**
 * The frame around `main`; without a login it has no navigation.
 * @param {any} me as the API tells it, or null
 * @param {HTMLElement} main
 */
export function buildFrame(me, main) {
  const frame = document.querySelector("#frame");
  if (frame === null) return;
  const leave = el(
    "button",
    { type: "button", class: "btn quiet icon log-out", onclick: leaveSite },
    icon("out"),
    el("span", { class: "unseen" }, "Log out"),
  );
  const brand = el(
    "a",
    { class: "brand", href: "/" },
    el("img", { src: "/mark.svg", alt: "", width: 28, height: 28 }),
    "Touchdown",
  );
  const top = el("header", { class: "top" }, brand, schemeButton(), me && leave);
  const side = el("div", { class: "side" }, top, me && navigation(me), me && whoIs(me));
  fill(frame, side, main);
}

/** Marks the current page in the navigation. @param {string} name */
export function markPage(name) {
  for (const link of document.querySelectorAll(".nav a")) {
    const current = link.getAttribute("href") === `/${name}`;
    if (!current) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    }
  }
}

/** @param {any} me */
function navigation(me) {
  const pages = me.rights.includes("admin") ? [...PAGES, ADMIN_PAGE] : PAGES;
  const links = pages.map(({ name, title }) =>
    el("li", {}, el("a", { href: `/${name}` }, icon(name), title)),
  );
  return el("nav", { class: "nav", "aria-label": "Pages" }, el("ul", {}, links));
}

/** @param {any} me */
function whoIs(me) {
  const [person] = me.people;
  const name = person?.name ?? person?.email ?? me.account.name;
  const leave = el(
    "button",
    { type: "button", class: "btn quiet", onclick: leaveSite },
    icon("out"),
    "Log out",
  );
  return el(
    "section",
    { class: "who", "aria-label": "Your login" },
    name !== "" &&
      el("div", {}, el("p", { class: "small soft" }, "Logged in as"), el("p", {}, name)),
    leave,
  );
}

/** Removes the account name after a logout. */
export function forgetName() {
  document.querySelector(".who > div")?.remove();
}

async function leaveSite() {
  try {
    await logOut();
  } catch (error) {
    void tell({ title: "You are still logged in", content: [errorNote(error)], button: "Close" });
  }
}

/** Cycles through the three schemes; the choice is stored on this device. */
function schemeButton() {
  const button = el("button", { type: "button", class: "btn quiet icon" });
  const show = () => {
    const scheme = document.documentElement.dataset["theme"] ?? "system";
    const label = el("span", { class: "unseen" }, `Colours: ${scheme}. Change`);
    fill(button, icon(scheme), label);
    button.title = `Colours: ${scheme}`;
  };
  button.addEventListener("click", () => {
    const scheme = document.documentElement.dataset["theme"] ?? "system";
    setScheme(SCHEMES[(SCHEMES.indexOf(scheme) + 1) % SCHEMES.length] ?? "system");
    show();
  });
  show();
  return button;
}

/** @param {string} scheme */
function setScheme(scheme) {
  if (scheme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = scheme;
  try {
    if (scheme === "system") localStorage.removeItem("theme");
    else localStorage.setItem("theme", scheme);
  } catch {
    // Without storage the choice applies to this page only.
  }
  announce(`Colours: ${scheme}`);
  document.dispatchEvent(new Event("schemechange"));
}
