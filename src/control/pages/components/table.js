/**
 * Tables: column and row headers, right-aligned numbers, and a scroll box for screens narrower than
 * the table.
 */

import { el } from "../lib/dom.js";

/** @typedef {import("../lib/dom.js").Child} Child */
/**
 * @template Row
 * @typedef {{title: string, cell: (row: Row) => Child | Child[], number?: boolean}} Column
 */

/**
 * A table whose first column names its rows. Roles are explicit, because some screen readers no
 * longer treat a table as one when CSS lays it out as blocks.
 * @template Row
 * @param {string} caption what the table shows, for those who do not see it
 * @param {readonly Column<Row>[]} columns
 * @param {readonly Row[]} rows
 * @param {{stack?: boolean, dense?: boolean}} [options] stack: on a narrow screen each row is a
 *   block of its own; dense: with its cells in a row, for long lists
 */
export function table(caption, columns, rows, { stack = false, dense = false } = {}) {
  const kind = [stack && "stack", dense && "dense"].filter(Boolean).join(" ");
  const head = columns.map(({ title, number = false }) =>
    el("th", { scope: "col", role: "columnheader", class: number ? "num" : null }, title),
  );
  const body = rows.map((row) => el("tr", { role: "row" }, cellsOf(columns, row)));
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    el(
      "table",
      { role: "table", class: kind === "" ? null : kind },
      el("caption", { class: "unseen" }, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
      el("tbody", { role: "rowgroup" }, body),
    ),
  );
}

/**
 * @template Row
 * @param {readonly Column<Row>[]} columns
 * @param {Row} row
 */
function cellsOf(columns, row) {
  return columns.map(({ title, cell, number = false }, index) => {
    const kind = number ? "num" : null;
    const content = [cell(row)].flat();
    return index === 0
      ? el("th", { scope: "row", role: "rowheader", class: kind }, content)
      : el("td", { role: "cell", class: kind, "data-title": title }, content);
  });
}
