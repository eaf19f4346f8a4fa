/**
 * The dashboard: loads the logged-in account, builds the frame, and shows the page that the URL
 * names. Each page is a module that is fetched when it is first shown. Leaving a page aborts its
 * signal, which ends its timers, requests and streams.
 *
 * Decision: docs/decisions/0047-pages-without-a-build-step.md
 */

import {
  ADMIN_PAGE,
  buildFrame,
  forgetName,
  markPage,
  PAGES,
  UNNAMED,
} from "./components/frame.js";
import { pageHeader } from "./components/page-header.js";
import { failed, loading } from "./components/states.js";
import { announce } from "./lib/announce.js";
import { ApiError, read } from "./lib/api.js";
import { every } from "./lib/clock.js";
import { el, fill } from "./lib/dom.js";
import { onLoginEnded, showsAccount } from "./lib/login-state.js";
import { resumeAct } from "./lib/resume.js";
import { loginError } from "./lib/session.js";
import { refreshTimes } from "./lib/times.js";

/** @typedef {{site: any, me: any, main: HTMLElement, signal: AbortSignal, go: typeof go}} Context */

const TIMES_MS = 10_000;
const VIEWS = new Map([...PAGES, ADMIN_PAGE].map((page) => [page.name, page]));

/** @type {any} */
const main = document.querySelector("#main");
let leave = new AbortController();
/** @type {any} */
let site = null;
/** @type {any} */
let me = null;

/** The logged-in account, or null. Without a session cookie no request is made. */
async function whoIsThere() {
  if (!site.logged_in) return null;
  try {
    return await read("/api/v1/me");
  } catch (error) {
    if (error instanceof ApiError && error.reason === "unauthorized") return null;
    throw error;
  }
}

async function start() {
  fill(main, loading());
  try {
    site = await read("/api/v1/site");
    if (site.logged_in) ahead(nameOf());
    me = await whoIsThere();
  } catch (error) {
    const view = VIEWS.get(nameOf());
    buildFrame(site?.logged_in ? UNNAMED : null, main);
    markPage(nameOf());
    const state = failed(error, () => void start());
    fill(main, pageHeader(view?.title ?? "Touchdown", null), state);
    return;
  }
  buildFrame(me, main);
  showsAccount(me === null ? null : me.account.id);
  await show({ first: true });
}

/** Of the page in the URL. */
function nameOf() {
  return location.pathname.slice(1) || "overview";
}

/** Fetches a page's modules while the account is still loading. @param {string} name */
function ahead(name) {
  // An error is reported when the page is shown.
  if (VIEWS.has(name)) import(`./views/${name}.js`).catch(() => null);
}

/** @param {string} name @returns {Promise<(context: Context) => unknown>} */
async function pageOf(name) {
  try {
    return (await import(`./views/${name}.js`)).page;
  } catch {
    // The browser logs which file failed.
    const message = "this page could not be loaded from the dashboard's server";
    throw new ApiError(0, { reason: "unreachable", message });
  }
}

/** Navigates to a page of this site without loading a new document. @param {string} path */
function go(path) {
  history.pushState(null, "", path);
  void show({ first: false });
}

/** The page of this name, if this user may see it. @param {string} name */
function viewOf(name) {
  return name === ADMIN_PAGE.name && !me.rights.includes("admin") ? undefined : VIEWS.get(name);
}

/** Of a fresh login, which leaves the session of before as it was. */
function tellLoginError() {
  const text = me === null ? null : loginError();
  if (text !== null) main.prepend(el("p", { class: "note bad", role: "alert" }, text));
}

/** Shows the page that the URL names. @param {{first: boolean}} when */
async function show({ first }) {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const name = nameOf();
  const view = me === null ? { name: "sign-in", title: "Log in" } : viewOf(name);
  markPage(name);
  document.title = `${view?.title ?? "Not found"} · Touchdown`;
  if (view === undefined) {
    fill(main, pageHeader("There is no such page", "The navigation has all that there are."));
    return;
  }
  fill(main, loading(`Loading ${view.title}`));
  try {
    const page = await pageOf(view.name);
    if (signal.aborted) return;
    await page({ site, me, main, signal, go });
    if (signal.aborted) return;
    tellLoginError();
    resumeAct();
  } catch (error) {
    if (signal.aborted) return;
    const state = failed(error, () => void show({ first }));
    fill(main, pageHeader(view.title, null), state);
  }
  if (first || signal.aborted) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  announce(view.title);
}

/** Links within the site change the page, not the document. */
document.addEventListener("click", (event) => {
  const modified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  if (event.defaultPrevented || event.button !== 0 || modified) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target !== "" || me === null) return;
  const isPage = link.pathname === "/" || VIEWS.has(link.pathname.slice(1));
  if (link.origin !== location.origin || !isPage || link.hash !== "") return;
  event.preventDefault();
  go(link.pathname + link.search);
});

onLoginEnded(forgetName);
addEventListener("popstate", () => void show({ first: false }));
every(TIMES_MS, refreshTimes, new AbortController().signal);
void start();
