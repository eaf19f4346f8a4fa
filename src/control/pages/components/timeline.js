/**
 * A receipt as a drawing: time on a logarithmic axis, because decoding takes microseconds and
 * landing most of a second; one row for the edge, one per delivery, one for the network. Redrawn
 * for each width, so that the text keeps its size.
 */

import { el, fill, svg } from "../lib/dom.js";
import { ends, micros, plural } from "../lib/format.js";

const LANE = 34;
const TOP = 8;
const AXIS = 26;
const LEFT = 10;
const RIGHT = 46;
/** Below this width labels are shortened. */
const NARROW = 480;
/** Where the logarithmic axis starts, in microseconds. */
const UNIT_US = 10;

/**
 * @typedef {{label: string, note: string, bar: [number, number] | null, bad: boolean,
 *   dots: {us: number, kind: "" | "soft" | "bad", text: string}[]}} Lane
 */

/** @param {any} receipt @param {AbortSignal} signal */
export function timeline(receipt, signal) {
  const lanes = lanesOf(receipt);
  const box = el("div");
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (box.clientWidth === width || box.clientWidth === 0) return;
    width = box.clientWidth;
    fill(box, drawing(lanes, width, describe(receipt)));
  });
  observer.observe(box);
  signal.addEventListener("abort", () => observer.disconnect());
  return box;
}

/** @param {any} receipt @returns {Lane[]} */
function lanesOf({ timings, leaders, landing }) {
  /** @type {Lane} */
  const edge = {
    label: "Edge",
    note: "received, decoded, sent",
    bar: [0, timings.first_sent_us ?? timings.decoded_us],
    bad: false,
    dots: [
      { us: 0, kind: "soft", text: "received" },
      { us: timings.decoded_us, kind: "soft", text: "decoded" },
    ],
  };
  if (timings.first_sent_us !== null) {
    edge.dots.push({ us: timings.first_sent_us, kind: "", text: "on the wire" });
  }
  /** @type {Lane[]} */
  const lanes = [edge, ...leaders.map(laneOf)];
  if (landing.known_us !== null) {
    const bad = landing.state === "expired" || landing.state === "dropped";
    lanes.push({
      label: bad ? "Network" : `Slot ${landing.slot}`,
      note:
        { landed: "landed", processed: "in a block", expired: "expired" }[
          /** @type {"landed"} */ (landing.state)
        ] ?? "given up",
      bar: null,
      bad,
      dots: [{ us: landing.known_us, kind: bad ? "bad" : "", text: "known" }],
    });
  }
  return lanes;
}

/** @param {any} delivery @returns {Lane} */
function laneOf(delivery) {
  const { identity, slot, state, reason, sent_us, acked_us, ended_us, resend } = delivery;
  const endUs = acked_us ?? ended_us;
  const bad = state === "failed" || state === "dropped";
  const again = resend > 0 ? `, resend ${resend}` : "";
  const end =
    { acked: "acknowledged", sent: "on the way" }[/** @type {"sent"} */ (state)] ??
    reason ??
    "failed";
  return {
    label: `Leader ${ends(identity, 4, 4)}`,
    note: `slot ${slot}${again}: ${end}${acked_us === null ? "" : ` ${micros(acked_us)}`}`,
    bar: sent_us !== null && endUs !== null ? [sent_us, endUs] : null,
    bad,
    dots: [
      ...(sent_us === null ? [] : [{ us: sent_us, kind: /** @type {const} */ (""), text: "sent" }]),
      ...(endUs === null
        ? []
        : [
            {
              us: endUs,
              kind: bad ? /** @type {const} */ ("bad") : /** @type {const} */ (""),
              text: end,
            },
          ]),
    ],
  };
}

/** The text alternative of the drawing. @param {any} receipt */
function describe({ timings, leaders, landing }) {
  const parts = [
    `Decoded after ${micros(timings.decoded_us)}`,
    timings.first_sent_us !== null && `on the wire after ${micros(timings.first_sent_us)}`,
    timings.first_acked_us !== null && `acknowledged after ${micros(timings.first_acked_us)}`,
    landing.known_us !== null && `${landing.state}, known after ${micros(landing.known_us)}`,
  ].filter(Boolean);
  return `Timeline with ${plural(leaders.length, "delivery", "deliveries")}. ${parts.join(", ")}.`;
}

/** @param {Lane[]} lanes @param {number} width @param {string} words */
function drawing(lanes, width, words) {
  const usMax = Math.max(1000, ...lanes.flatMap(({ dots }) => dots.map(({ us }) => us)));
  const span = width - LEFT - RIGHT;
  const place = (/** @type {number} */ us) =>
    LEFT + (span * Math.log10(1 + Math.max(0, us) / UNIT_US)) / Math.log10(1 + usMax / UNIT_US);
  const height = TOP + lanes.length * LANE + AXIS;
  const frame = {
    class: "timeline",
    viewBox: `0 0 ${width} ${height}`,
    height,
    role: "img",
    "aria-label": words,
  };
  return svg(
    "svg",
    frame,
    ticks(usMax, place, TOP + lanes.length * LANE),
    lanes.flatMap((lane, index) => drawLane(lane, TOP + index * LANE, width, place)),
  );
}

/** @param {number} usMax @param {(us: number) => number} place @param {number} bottom */
function ticks(usMax, place, bottom) {
  const all = [0];
  for (let us = 100; us <= usMax; us *= 10) all.push(us);
  return all.flatMap((us) => {
    const x = place(us);
    const line = { class: "rule", x1: x, x2: x, y1: TOP, y2: bottom };
    const anchor = us === 0 ? "start" : "middle";
    const text = { x: us === 0 ? x - 4 : x, y: bottom + 17, "text-anchor": anchor };
    return [svg("line", line), svg("text", text, us === 0 ? "0" : micros(us))];
  });
}

/**
 * @param {Lane} lane
 * @param {number} y
 * @param {number} width
 * @param {(us: number) => number} place
 */
function drawLane({ label, note, bar, bad, dots }, y, width, place) {
  const middle = y + 25;
  const words = svg(
    "text",
    { x: LEFT - 4, y: y + 13 },
    svg("tspan", { class: "strong" }, width < NARROW ? label.replace("Leader ", "") : label),
    svg("tspan", { dx: 8 }, note),
  );
  const base = { class: "rule", x1: LEFT, x2: width - 4, y1: middle, y2: middle };
  const [from, to] = bar ?? [0, 0];
  const box = {
    class: bad ? "bar bad" : "bar",
    x: place(from),
    y: middle - 4,
    width: Math.max(2, place(to) - place(from)),
    height: 8,
    rx: 4,
  };
  return [
    svg("line", base),
    bar && svg("rect", box),
    words,
    ...dots.map(({ us, kind, text }) =>
      svg(
        "circle",
        { class: `dot ${kind}`, cx: place(us), cy: middle, r: 4 },
        svg("title", {}, `${text} ${micros(us)}`),
      ),
    ),
  ];
}
