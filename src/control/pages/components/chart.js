/**
 * A plot over time by uPlot, which is fetched on demand. Lines differ by dashes as well as by
 * colour; under the plot are a sentence with its numbers and a table of its values, for users that
 * cannot see the plot.
 */

import { ApiError } from "../lib/api.js";
import { el, fill, svg } from "../lib/dom.js";
import { table } from "./table.js";

/**
 * @typedef {{label: string, colour: 1 | 2 | 3, dash?: number[], values: (number | null)[],
 *   format: (value: number | null) => string}} Line
 */

const HEIGHT = 200;
const DAY_S = 86_400;
/** All plotted values are integers (counts or microseconds): no ticks between them. */
const WHOLE_STEPS = Array.from({ length: 40 }, (_, index) => {
  return ([1, 2, 5][index % 3] ?? 1) * 10 ** Math.floor(index / 3);
});
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** @type {Promise<any> | null} */
let library = null;

/** Preloads uPlot. */
export function plotsAhead() {
  // An error is shown in place of the plot.
  uplot().catch(() => null);
}

/** Loads uPlot once. Its ES module is three times as large as the script that sets a global. */
function uplot() {
  library ??= new Promise((resolve, reject) => {
    const style = el("link", { rel: "stylesheet", href: "/vendor/uPlot.min.css" });
    const script = el("script", { src: "/vendor/uPlot.iife.min.js" });
    script.addEventListener("load", () => resolve(Reflect.get(globalThis, "uPlot")));
    script.addEventListener("error", () => {
      library = null;
      const message = "the plots cannot be drawn, because their script could not be fetched";
      reject(new ApiError(0, { reason: "unreachable", message }));
    });
    document.head.append(style, script);
  });
  return library;
}

/**
 * A plot that `show` updates with new values.
 * @param {string} title
 * @param {AbortSignal} signal of the page
 */
export function chart(title, signal) {
  const canvas = el("div", { class: "chart", role: "img", "aria-label": title });
  const keys = el("ul", { class: "keyline" });
  const caption = el("figcaption");
  const values = el("div");
  const details = el("details", {}, el("summary", {}, "Values as a table"), values);
  const figure = el(
    "figure",
    { class: "sheet" },
    el("div", { class: "sheet-head" }, el("h2", {}, title), keys),
    canvas,
    caption,
    details,
  );
  /** @type {any} */
  let plot = null;
  /** @type {{at: number[], lines: Line[]} | null} */
  let data = null;

  async function draw() {
    const UPlot = await uplot();
    if (signal.aborted || data === null) return;
    plot?.destroy();
    fill(canvas);
    plot = new UPlot(optionsOf(canvas, data.lines), columnsOf(data), canvas);
  }
  const fails = () => fill(canvas, el("p", { class: "note" }, "The plot could not be drawn."));
  const redraw = () => void draw().catch(fails);

  const observer = new ResizeObserver(() => {
    const width = canvas.clientWidth;
    if (plot !== null && width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  });
  observer.observe(canvas);
  document.addEventListener("schemechange", redraw, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    plot?.destroy();
  });
  details.addEventListener("toggle", () => showValues());

  function showValues() {
    if (!details.open || data === null) return;
    fill(values, valuesOf(title, data));
  }

  return {
    figure,
    /** @param {number[]} at unix seconds @param {Line[]} lines @param {string} summary */
    show(at, lines, summary) {
      const sameLines = data !== null && data.lines.length === lines.length;
      data = { at, lines };
      caption.textContent = summary;
      canvas.setAttribute("aria-label", `${title}. ${summary}`);
      fill(keys, lines.map(keyOf));
      showValues();
      if (plot !== null && sameLines) plot.setData(columnsOf(data));
      else redraw();
    },
  };
}

/** @param {{at: number[], lines: Line[]}} data */
function columnsOf({ at, lines }) {
  return [at, ...lines.map(({ values }) => values)];
}

/** Legend entry: the stroke of a line, and its name. @param {Line} line */
function keyOf({ label, colour, dash = [] }) {
  const stroke = `var(--series-${colour})`;
  const line = { d: "M1 5h20", stroke, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") };
  const sample = { width: 22, height: 10, "aria-hidden": "true" };
  return el("li", {}, svg("svg", sample, svg("path", line)), label);
}

/**
 * @param {string} title
 * @param {{at: number[], lines: Line[]}} data
 */
function valuesOf(title, { at, lines }) {
  const time = new Intl.DateTimeFormat("en-GB", { dateStyle: "short", timeStyle: "short" });
  const columns = [
    {
      title: "From",
      cell: (/** @type {number} */ row) => time.format(new Date((at[row] ?? 0) * 1000)),
    },
    ...lines.map(({ label, values, format }) => ({
      title: label,
      number: true,
      cell: (/** @type {number} */ row) => format(values[row] ?? null),
    })),
  ];
  const rows = at.map((_, index) => index).toReversed();
  return table(`${title}, newest first`, columns, rows);
}

/**
 * @param {HTMLElement} canvas
 * @param {Line[]} lines
 */
function optionsOf(canvas, lines) {
  const colours = coloursOf(canvas);
  const font = `12px ${getComputedStyle(canvas).fontFamily}`;
  const format = lines[0]?.format ?? String;
  const axis = {
    stroke: colours.soft,
    font,
    grid: { stroke: colours.line, width: 1 },
    ticks: { show: false },
  };
  return {
    width: Math.max(canvas.clientWidth, 200),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    padding: [12, 20, 0, 0],
    scales: { y: { range: rangeOf } },
    axes: [
      { ...axis, size: 28, space: 64, grid: { show: false }, values: momentsOf },
      {
        ...axis,
        size: 64,
        incrs: WHOLE_STEPS,
        values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(format),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour, dash = [] }) => ({
        label,
        stroke: colours.series[colour - 1],
        width: 2,
        dash,
        spanGaps: false,
        points: { size: 5, show: hasGaps },
      })),
    ],
  };
}

/** Draws the points of a line with gaps, because no line leads to a value between two gaps. */
function hasGaps(/** @type {any} */ plot, /** @type {number} */ line) {
  return plot.data[line].includes(null);
}

/** Times of day, or dates if a tick is a day or more. @type {any} */
function momentsOf(
  /** @type {any} */ _,
  /** @type {number[]} */ ticks,
  /** @type {number} */ __,
  /** @type {number} */ ___,
  /** @type {number} */ stepSeconds,
) {
  const format = stepSeconds >= DAY_S ? day : clock;
  return ticks.map((tick) => format.format(new Date(tick * 1000)));
}

/** From 0 to slightly above the highest value. */
function rangeOf(
  /** @type {any} */ _,
  /** @type {number} */ __,
  /** @type {number | null} */ most,
) {
  return [0, most === null || most <= 0 ? 1 : most * 1.1];
}

/** The computed colours of the scheme; a canvas cannot use CSS variables. */
function coloursOf(/** @type {HTMLElement} */ canvas) {
  const probe = el("span");
  canvas.append(probe);
  const of = (/** @type {string} */ name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const series = [1, 2, 3].map((number) => of(`--series-${number}`));
  const found = { soft: of("--ink-soft"), line: of("--line"), series };
  probe.remove();
  return found;
}
