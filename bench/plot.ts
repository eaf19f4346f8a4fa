/**
 * Draws spans of quantiles on a logarithmic scale as SVG: a line from p50 to p99.9, a full dot at
 * p50, a ring at p99, a bar at p99.9. Uses no external font, script or color scheme.
 */

export interface Span {
  /** Spans of one group stand together. */
  readonly group: string;
  readonly name: string;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

const LEFT = 250;
const RIGHT = 60;
const WIDTH = 860;
const ROW = 22;
const GAP = 14;
const TOP = 44;
const COLOURS = ["#b4552d", "#1f6f8b", "#3a8f5c", "#7a6bb0", "#8a8a2a", "#555555"];

export function drawSpans(title: string, spans: readonly Span[]): string {
  const low = 10 ** Math.floor(Math.log10(Math.min(...spans.map(({ p50 }) => p50))));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...spans.map(({ p999 }) => p999))));
  const at = (value: number): number => {
    const share = Math.log10(Math.max(value, low) / low) / Math.log10(high / low);
    return Math.round((LEFT + share * (WIDTH - LEFT - RIGHT)) * 10) / 10;
  };
  const names = [...new Set(spans.map(({ name }) => name))];
  const body: string[] = [];
  let y = TOP;
  let group = "";
  for (const span of spans) {
    if (span.group !== group) {
      group = span.group;
      y += GAP;
      body.push(text(8, y + 4, group, "start", "bold"));
    }
    const colour = COLOURS[names.indexOf(span.name) % COLOURS.length] ?? "#000";
    body.push(text(LEFT - 12, y + 4, span.name, "end"), drawSpan(span, at, y, colour));
    y += ROW;
  }
  const height = y + 30;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" ` +
    `viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">\n` +
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>\n` +
    `${text(8, 20, title, "start", "bold")}\n${drawScale(low, high, at, y)}\n` +
    `${body.join("\n")}\n</svg>\n`
  );
}

function drawSpan(span: Span, at: (value: number) => number, y: number, colour: string): string {
  const { p50, p99, p999 } = span;
  return (
    `<g stroke="${colour}" fill="${colour}">` +
    `<line x1="${at(p50)}" y1="${y}" x2="${at(p999)}" y2="${y}" stroke-width="2"/>` +
    `<circle cx="${at(p50)}" cy="${y}" r="5"/>` +
    `<circle cx="${at(p99)}" cy="${y}" r="4" fill="#fff" stroke-width="2"/>` +
    `<line x1="${at(p999)}" y1="${y - 6}" x2="${at(p999)}" y2="${y + 6}" stroke-width="2"/></g>`
  );
}

function drawScale(low: number, high: number, at: (value: number) => number, end: number): string {
  const lines: string[] = [];
  for (let mark = low; mark <= high; mark *= 10) {
    const x = at(mark);
    lines.push(
      `<line x1="${x}" y1="${TOP - 6}" x2="${x}" y2="${end}" stroke="#ddd"/>`,
      text(x, end + 16, mark.toLocaleString("en-US"), "middle"),
    );
  }
  return lines.join("\n");
}

function text(x: number, y: number, content: string, anchor: string, weight = "normal"): string {
  const safe = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-weight="${weight}">${safe}</text>`;
}
