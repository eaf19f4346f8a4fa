/**
 * The page for visitors that are not logged in: what this is, and the login button.
 */

import { errorText } from "../components/states.js";
import { el, fill, svg } from "../lib/dom.js";
import { LOGIN_ERRORS, logIn, loginError } from "../lib/session.js";

const POINTS = [
  ["Straight to the leaders", "Over warm QUIC connections, to those that can include it."],
  ["Refused with a reason", "What cannot land is not sent: the response states what is wrong."],
  ["Followed to the end", "Each transaction has a receipt: what was sent, where it landed."],
];

/** @param {import("../app.js").Context} context */
export function page({ site, main }) {
  const error = loginError();
  const fault = el("div", { role: "alert", "aria-live": "assertive" });
  const tell = (/** @type {string} */ text) => fill(fault, el("p", { class: "note bad" }, text));
  if (error !== null) tell(error);
  else if (!site.login.available) tell(LOGIN_ERRORS.get("login_unavailable") ?? "");
  const button = el("button", { type: "button", class: "btn main" }, "Log in");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await logIn(location.pathname === "/" ? "/overview" : location.pathname + location.search);
    } catch (reason) {
      button.disabled = false;
      tell(errorText(reason));
    }
  });
  const lead =
    "Touchdown takes a signed Solana transaction over HTTP and puts it on the wire to the " +
    "leaders in less than a millisecond. A first login makes an account with a key.";
  fill(
    main,
    el(
      "div",
      { class: "door" },
      el(
        "section",
        {},
        fault,
        el("h1", { tabindex: -1 }, "Transactions that reach the leader in time"),
        el("p", { class: "lead" }, lead),
        el(
          "div",
          { class: "act" },
          button,
          el(
            "a",
            { class: "btn quiet", href: "/api/openapi.json", target: "_blank", rel: "noopener" },
            "API description",
          ),
        ),
      ),
      runway(),
      el(
        "section",
        { class: "three", "aria-label": "What it does" },
        POINTS.map(([title, text]) => el("div", {}, el("h2", {}, title), el("p", {}, text))),
      ),
      el(
        "p",
        { class: "page-foot" },
        el("span", {}, `Version ${site.version}`),
        el(
          "span",
          {},
          `Regions: ${site.regions.map((/** @type {any} */ { name }) => name).join(", ") || "none yet"}`,
        ),
      ),
    ),
  );
}

/** A row of slots, and where a transaction lands. */
function runway() {
  const slots = Array.from({ length: 24 }, (_, index) =>
    svg("rect", {
      x: 8 + index * 33,
      y: 96,
      width: 25,
      height: 8,
      rx: 2,
      fill: index === 15 ? "var(--accent)" : "var(--line)",
    }),
  );
  const path = svg("path", {
    d: "M8 14 C 200 14, 360 60, 512 88",
    fill: "none",
    stroke: "var(--accent)",
    "stroke-width": 2,
    "stroke-dasharray": "3 6",
    "stroke-linecap": "round",
  });
  const mark = svg("path", { d: "M503 72h24l-12 16z", fill: "var(--accent)" });
  const frame = { class: "runway", viewBox: "0 0 800 112", "aria-hidden": "true" };
  return svg("svg", frame, slots, path, mark);
}
