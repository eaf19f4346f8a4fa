/** The row type of the metric tables. */

export interface MetricRow {
  readonly name: Name;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

type Name = `touchdown_${string}`;

/** A row of the kind; the name keeps its literal type, so that no metric can be omitted. */
function row<K extends MetricRow["kind"]>(kind: K) {
  return <N extends Name, const L extends readonly string[]>(name: N, labels: L, help: string) => {
    return { name, kind, labels, help } as const;
  };
}
export const counter = row("counter");
export const gauge = row("gauge");
export const histogram = row("histogram");
