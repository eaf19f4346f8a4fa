/**
 * The key journal of an edge that another process may replace: only one of the two may write the
 * file. While the journal is lent this process keeps its changes of keys in memory alone, since the
 * other one reads the same changes from the database; taken back, the file is rewritten.
 *
 * Decision: docs/decisions/0052-hand-over.md
 */

import { createKeyJournal, type KeyJournal } from "./journal.ts";
import { type JournalLock, lockJournal } from "./journal-lock.ts";

export interface LendableJournal extends KeyJournal {
  /** Closes the file and releases its lock. */
  lend(): void;
  /** @throws SetupError while another process has it */
  takeBack(): void;
}

/** @throws SetupError while another process has the file */
export function openLendableJournal(path: string): LendableJournal {
  const journal = createKeyJournal(path);
  /** null while it is lent, and after the end. */
  let lock: JournalLock | null = lockJournal(path);

  function close(): void {
    journal.close();
    lock?.release();
    lock = null;
  }

  return {
    counters: journal.counters,
    load: (table) => journal.load(table),
    append(changes) {
      if (lock !== null) journal.append(changes);
    },
    async rewrite(table, revision, pause) {
      if (lock !== null) await journal.rewrite(table, revision, pause);
    },
    get needsRewrite() {
      return lock !== null && journal.needsRewrite;
    },
    close,
    lend: close,
    takeBack() {
      lock ??= lockJournal(path);
    },
  };
}
