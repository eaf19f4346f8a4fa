/** Suggests the name that a mistyped name most likely means. */

/** Maximum number of wrong, missing, surplus or swapped letters that a suggestion corrects. */
const EDITS_MAX = 2;

/** `, did you mean NAME?` with the nearest name; empty if none is near. */
export function didYouMean(typed: string, names: readonly string[]): string {
  const word = typed.toLowerCase();
  let [nearest, fewest] = ["", EDITS_MAX + 1];
  for (const name of names) {
    // In a short name such as --url, two different letters leave too little in common.
    const max = Math.min(EDITS_MAX, Math.floor(name.replace(/^-+/, "").length / 2));
    if (Math.abs(word.length - name.length) > max) continue;
    const edits = editsBetween(word, name);
    if (edits <= max && edits < fewest) [nearest, fewest] = [name, edits];
  }
  return nearest === "" ? "" : `, did you mean ${nearest}?`;
}

/** The optimal string alignment distance: letters changed, inserted, deleted or swapped. */
function editsBetween(a: string, b: string): number {
  const row = (i: number): number[] => Array.from({ length: b.length + 1 }, (_, j) => i + j);
  let [before, last] = [row(0), row(0)];
  for (let i = 1; i <= a.length; i += 1) {
    const next = row(i);
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const change = at(last, j - 1) + (isSame ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? at(before, j - 2) + 1 : Number.POSITIVE_INFINITY;
      next[j] = Math.min(change, swap, at(last, j) + 1, at(next, j - 1) + 1);
    }
    [before, last] = [last, next];
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
