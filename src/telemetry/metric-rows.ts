/** What the tables of metrics are made of. */

export interface MetricRow {
  readonly name: Name;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

type Name = `touchdown_${string}`;

/** A row of the kind; the name stays a type of its own, so that no metric can be forgotten. */
function row<K extends MetricRow["kind"]>(kind: K) {
  return <N extends Name, const L extends readonly string[]>(name: N, labels: L, help: string) => {
    return { name, kind, labels, help } as const;
  };
}
export const counter = row("counter");
export const gauge = row("gauge");
export const histogram = row("histogram");
