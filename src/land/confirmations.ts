/**
 * Ends what a block held whose slot is confirmed, a few transactions a turn of the event loop: at
 * 5,000 a second a slot has 2,000, and to end them all at once would hold up for milliseconds what
 * comes meanwhile.
 */

import type { Clock } from "../core/clock.ts";
import { LANDINGS_A_TURN } from "../core/limits.ts";
import { createTurns, type Turns } from "../core/turns.ts";
import { NONE } from "./byte-store.ts";
import { SIGHTED, type Watch } from "./watch.ts";

export interface ConfirmationsDeps {
  readonly clock: Clock;
  readonly watch: Watch;
  /** The block that holds it is confirmed. */
  readonly onLanded: (row: number, slot: number) => void;
}

/** What one slot held when it was confirmed; each row with the packet that it had then. */
interface Confirmed {
  readonly slot: number;
  readonly rows: readonly number[];
  readonly ids: readonly number[];
  done: number;
}

export class Confirmations {
  readonly #deps: ConfirmationsDeps;
  /** What was told of, oldest first. */
  readonly #waiting: Confirmed[] = [];
  readonly #turns: Turns;

  constructor(deps: ConfirmationsDeps) {
    this.#deps = deps;
    this.#turns = createTurns(deps.clock, () => this.#endSome());
  }

  /** Ends some at once, and the others in turns of their own. */
  confirm(slot: number): void {
    const { watch } = this.#deps;
    const inHand = this.#waiting.filter((waiting) => waiting.slot === slot);
    const known = new Set(inHand.flatMap(({ ids }) => ids));
    const rows: number[] = [];
    for (let row = watch.oldest; row !== NONE; row = watch.newerThan(row)) {
      if (this.#isIn(row, slot) && !known.has(watch.packetId[row] ?? NONE)) rows.push(row);
    }
    if (rows.length === 0) return;
    const ids = rows.map((row) => watch.packetId[row] ?? NONE);
    this.#waiting.push({ slot, rows, ids, done: 0 });
    this.#turns.begin();
  }

  /** Ends all of them now. */
  flush(): void {
    this.#turns.finish();
  }

  /** Answers whether there are more. */
  #endSome(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    const { watch, onLanded } = this.#deps;
    const { slot, rows, ids } = first;
    const end = Math.min(rows.length, first.done + LANDINGS_A_TURN);
    for (; first.done < end; first.done += 1) {
      const row = rows[first.done] ?? NONE;
      const isHeld = watch.holds(row, ids[first.done] ?? NONE);
      if (isHeld && this.#isIn(row, slot)) onLanded(row, slot);
    }
    if (end === rows.length) this.#waiting.splice(0, 1);
    return this.#waiting.length > 0;
  }

  #isIn(row: number, slot: number): boolean {
    const { watch } = this.#deps;
    return watch.is(row, SIGHTED) && watch.sightedSlot[row] === slot;
  }
}
