/**
 * The heights of blocks that await the confirmation of their slot, by slot and bank.
 *
 * A block without a bank's id fits every confirmation of its slot, and a confirmation without one
 * fits the newest block of its slot.
 */

import { GEYSER_BANKS_PER_SLOT_MAX, GEYSER_BLOCKS_MAX } from "../limits.ts";

interface BlockHeight {
  readonly bank: number | null;
  readonly height: number;
}

export class BlockHeights {
  /** Oldest slot first, and the newest block of a slot last. */
  readonly #slots = new Map<number, readonly BlockHeight[]>();

  /** Drops the oldest where there is no room. */
  add(slot: number, bank: number | null, height: number): void {
    const others = this.#slots.get(slot)?.filter((each) => each.bank !== bank) ?? [];
    const blocks = [...others, { bank, height }];
    this.#slots.set(slot, blocks.slice(-GEYSER_BANKS_PER_SLOT_MAX));
    if (this.#slots.size <= GEYSER_BLOCKS_MAX) return;
    for (const oldest of this.#slots.keys()) {
      this.#slots.delete(oldest);
      break;
    }
  }

  /** Removes the slot. Returns the height of its confirmed bank; null if unknown. */
  take(slot: number, bank: number | null): number | null {
    const blocks = this.#slots.get(slot);
    if (blocks === undefined) return null;
    this.#slots.delete(slot);
    const newest = blocks.findLast((each) => bank === null || each.bank === bank);
    return (newest ?? blocks.find((each) => each.bank === null))?.height ?? null;
  }

  /** The ids of banks so far are not those of later confirmations: each slot keeps one height. */
  forgetBanks(): void {
    for (const [slot, blocks] of this.#slots) {
      this.#slots.set(
        slot,
        blocks.slice(-1).map(({ height }) => ({ bank: null, height })),
      );
    }
  }
}
