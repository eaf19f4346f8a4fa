/**
 * A strict reader of the Prometheus text format 0.0.4, for tests and the load generator: it throws
 * on what a scraper would reject or only tolerate, such as a sample without a TYPE before it, a
 * repeated series, or buckets that do not rise.
 */

export interface Family {
  readonly name: string;
  readonly kind: string;
  readonly help: string;
  readonly samples: readonly Series[];
}

export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Open {
  readonly name: string;
  readonly help: string;
  readonly kind: string;
  readonly samples: Series[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(,|$)/y;

/** The families of a page by name; throws an `Error` with the line that is wrong. */
export function parsePrometheus(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the page does not end with a line feed");
  const families = new Map<string, Open>();
  const identities = new Set<string>();
  const helps = new Map<string, string>();
  let open: Open | null = null;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment !== null) {
      const [, what = "", name = "", rest = ""] = comment;
      if (what === "HELP") helps.set(name, rest);
      else {
        if (families.has(name)) throw new Error(`a second TYPE: ${line}`);
        open = { name, help: helps.get(name) ?? "", kind: rest, samples: [] };
        families.set(name, open);
      }
      continue;
    }
    const series = parseSample(line);
    if (open === null || !belongs(series.name, open)) throw new Error(`no TYPE before: ${line}`);
    const identity = `${series.name} ${JSON.stringify(Object.entries(series.labels).sort())}`;
    if (identities.has(identity)) throw new Error(`a series twice: ${line}`);
    identities.add(identity);
    open.samples.push(series);
  }
  for (const family of families.values()) if (family.kind === "histogram") checkHistogram(family);
  return families;
}

/** The value of one series; throws when there is none. */
export function seriesValue(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  for (const family of families.values()) {
    for (const series of family.samples) {
      const wanted = Object.entries(labels);
      if (series.name !== name || Object.keys(series.labels).length !== wanted.length) continue;
      if (wanted.every(([label, value]) => series.labels[label] === value)) return series.value;
    }
  }
  throw new Error(`no series ${name} ${JSON.stringify(labels)}`);
}

function parseSample(line: string): Series {
  const parts = SAMPLE.exec(line);
  if (parts === null) throw new Error(`not a sample: ${line}`);
  const [, name = "", inside = "", number = ""] = parts;
  const labels: Record<string, string> = {};
  let at = 0;
  while (at < inside.length) {
    LABEL.lastIndex = at;
    const label = LABEL.exec(inside);
    if (label === null) throw new Error(`labels that cannot be read: ${line}`);
    const [whole, key = "", value = ""] = label;
    if (key in labels) throw new Error(`a label twice: ${line}`);
    labels[key] = value.replaceAll(/\\(.)/g, (_all, sign) => (sign === "n" ? "\n" : sign));
    at += whole.length;
  }
  const value = parseValue(number);
  if (value === null) throw new Error(`not a number: ${line}`);
  return { name, labels, value };
}

function parseValue(text: string): number | null {
  if (text === "NaN" || text === "Nan") return Number.NaN;
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  if (text === "-Inf") return Number.NEGATIVE_INFINITY;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

function belongs(name: string, family: Open): boolean {
  if (family.kind !== "histogram" && family.kind !== "summary") return name === family.name;
  return ["", "_bucket", "_sum", "_count"].some((tail) => name === `${family.name}${tail}`);
}

/** Buckets rise in bound and in count, and end at +Inf with the count; per set of other labels. */
function checkHistogram(family: Open): void {
  const last = new Map<string, { bound: number; count: number }>();
  for (const { name, labels, value } of family.samples) {
    const others = JSON.stringify(Object.entries(labels).filter(([label]) => label !== "le"));
    const before = last.get(others) ?? { bound: Number.NEGATIVE_INFINITY, count: 0 };
    if (name === `${family.name}_bucket`) {
      const bound = parseValue(labels["le"] ?? "") ?? Number.NaN;
      if (!(bound > before.bound))
        throw new Error(`${name}: bounds do not rise at ${labels["le"]}`);
      if (value < before.count) throw new Error(`${name}: counts fall at ${labels["le"]}`);
      last.set(others, { bound, count: value });
    } else if (name === `${family.name}_count`) {
      const whole = before.bound === Number.POSITIVE_INFINITY && before.count === value;
      if (!whole) throw new Error(`${name} is not the last bucket`);
    }
  }
}
