/**
 * The parts of the documents that are made from code: each stands between
 * `<!-- generated: NAME -->` and `<!-- end -->`. `npm run docs` writes them, a test compares them.
 */

import { KEY_PATHS, KEYS } from "../../src/config/table.ts";
import {
  CONTROL_REJECTIONS,
  DELIVERY_REASONS,
  END_REASONS,
  REJECTIONS,
} from "../../src/core/errors.ts";
import { CONTROL_METRICS } from "../../src/telemetry/control-metric-table.ts";
import type { MetricRow } from "../../src/telemetry/metric-rows.ts";
import { METRICS } from "../../src/telemetry/metric-table.ts";

interface Block {
  /** The one document that holds it. */
  readonly page: string;
  readonly make: () => string;
}

const BLOCKS: Readonly<Record<string, Block>> = {
  rejections: { page: "README.md", make: rejections },
  "delivery reasons": { page: "docs/api.md", make: () => reasons(DELIVERY_REASONS) },
  "end reasons": { page: "docs/api.md", make: () => reasons(END_REASONS) },
  config: { page: "docs/configuration.md", make: describeKeysMarkdown },
  metrics: { page: "docs/metrics.md", make: () => metrics(METRICS) },
  "control metrics": { page: "docs/metrics.md", make: () => metrics(CONTROL_METRICS) },
  "control rejections": { page: "docs/dashboard.md", make: controlRefusals },
};

/** The documents that hold blocks, each with their names. */
export const GENERATED_PAGES: ReadonlyMap<string, readonly string[]> = new Map(
  [...new Set(Object.values(BLOCKS).map(({ page }) => page))].map((page) => [
    page,
    Object.keys(BLOCKS).filter((name) => BLOCKS[name]?.page === page),
  ]),
);

const FENCE = /<!-- generated: (.+?) -->\n[\s\S]*?<!-- end -->/g;

/** The document with every block made anew. An unknown name is an error. */
export function withGeneratedBlocks(document: string): string {
  return document.replace(FENCE, (_, name: string) => {
    const block = BLOCKS[name];
    if (block === undefined) throw new Error(`there is no generated block ${name}`);
    return `<!-- generated: ${name} -->\n${block.make()}\n<!-- end -->`;
  });
}

/** The names of the blocks that a document holds. */
export function blocksOf(document: string): readonly string[] {
  return [...document.matchAll(FENCE)].map((match) => match[1] ?? "");
}

function rejections(): string {
  const rows = Object.entries(REJECTIONS).map(
    ([name, row]) =>
      `| \`${name}\` | ${row.status} | ${row.rpcStatus} | ${row.rpcCode} | ${row.quicCode} ` +
      `| ${row.retryable ? "yes" : "no"} | ${row.meaning} |`,
  );
  return [
    "| reason | HTTP | JSON-RPC: HTTP | JSON-RPC: code | QUIC | retry | when |",
    "|---|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

function reasons(table: Readonly<Record<string, string>>): string {
  const rows = Object.entries(table).map(([name, when]) => `| \`${name}\` | ${when} |`);
  return ["| reason | when |", "|---|---|", ...rows].join("\n");
}

function controlRefusals(): string {
  const rows = Object.entries(CONTROL_REJECTIONS).map(
    ([name, { status, meaning }]) => `| \`${name}\` | ${status} | ${meaning} |`,
  );
  return ["| reason | HTTP | when |", "|---|---|---|", ...rows].join("\n");
}

function metrics(table: readonly MetricRow[]): string {
  const rows = table.map(({ name, kind, labels, help }) => {
    const list = labels.length === 0 ? "–" : labels.map((label) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${kind} | ${list} | ${help.replace(/\.$/, "")} |`;
  });
  return ["| metric | kind | labels | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

/** The rows of the table in docs/configuration.md. */
export function describeKeysMarkdown(): string {
  const rows = KEY_PATHS.map((path) => {
    const { kind, description } = KEYS[path];
    const values = kind.bounds === "" ? kind.name : `${kind.name}: ${kind.bounds}`;
    return `| \`${path}\` | ${defaultText(path)} | ${values} | ${description} |`;
  });
  return ["| key | default | values | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function defaultText(path: (typeof KEY_PATHS)[number]): string {
  const { fallback, neededBy } = KEYS[path];
  if (fallback !== null) return `\`${JSON.stringify(fallback)}\``;
  return neededBy === null ? "–" : `needed by \`${neededBy}\``;
}
