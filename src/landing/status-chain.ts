/**
 * Whether the statuses of a node may be of blocks that the cluster deleted.
 *
 * When slot numbers are used again, a node may stay on the deleted blocks for a while, or for ever,
 * and a status names no block. Each response says which slot the node is at. If that was above the
 * slot to which the cluster went back, the node may be on the deleted blocks until a response is
 * below the ones before, because the node went back as well, or far above. Until then only statuses
 * in blocks before the deleted ones count.
 */

import { SLOT_AGREE_DISTANCE } from "../core/limits.ts";
import { STATUS_DELETED_SLOTS_MAX } from "./limits.ts";

export class StatusChain {
  /** The highest slot that the node was at since it last went back. */
  #highestSlot = -1;
  /** The last slot that surely was not deleted; null while nothing is in doubt. */
  #keptSlot: number | null = null;

  /** The cluster continues from this slot, and uses those above again. */
  slotWentBack(slot: number): void {
    if (this.#highestSlot - slot <= SLOT_AGREE_DISTANCE) return;
    this.#keptSlot = Math.min(slot, this.#keptSlot ?? slot);
  }

  /** A response is from a node at this slot. */
  responded(slot: number): void {
    const isBack = slot < this.#highestSlot - SLOT_AGREE_DISTANCE;
    const isPast = slot > this.#highestSlot + STATUS_DELETED_SLOTS_MAX;
    if (this.#keptSlot === null) this.#highestSlot = Math.max(this.#highestSlot, slot);
    else if (isBack || isPast) {
      this.#keptSlot = null;
      this.#highestSlot = slot;
    }
  }

  /** Whether a status may be of a deleted block; null: the absence of one. */
  isInDoubt(slot: number | null): boolean {
    return this.#keptSlot !== null && (slot === null || slot > this.#keptSlot);
  }
}
