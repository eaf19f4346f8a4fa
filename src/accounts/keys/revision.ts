/**
 * The version of an edge's keys: the number of the last change, and its mark from the database. A
 * restored database continues from an older number, so numbers recur for other changes; marks are
 * random and never do.
 *
 * Decision: docs/decisions/0005-revision-ids.md
 */

export interface Revision {
  readonly number: number;
  /** null in a file from before marks existed: no database knows it. */
  readonly mark: string | null;
}

export function isSameRevision(a: Revision, b: Revision): boolean {
  return a.number === b.number && a.mark === b.mark;
}
