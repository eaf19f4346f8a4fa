/**
 * How far an edge's keys are: the number of the last change, and the mark that the database gave
 * it. A database that was restored counts on from an older number, so numbers alone come again for
 * other changes; marks are random and never do.
 *
 * Decision: docs/decisions/0005-revision-ids.md
 */

export interface Revision {
  readonly number: number;
  /** null from a file of the time before marks: no database knows it. */
  readonly mark: string | null;
}

export function isSameRevision(a: Revision, b: Revision): boolean {
  return a.number === b.number && a.mark === b.mark;
}
