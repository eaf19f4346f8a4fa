/**
 * Detects that the cluster confirms no block while slots pass, as during the migration to
 * Alpenglow, when blocks hold votes only.
 *
 * Confirmed slots come from other watchers, over gRPC and in polls. When one source reports eight
 * new slots, in a second or longer, and no confirmed slot rose meanwhile, the node is asked for its
 * confirmed and its processed slot: only if the one did not rise either, and the other is eight
 * slots ahead of it, does the confirmation stand still. So neither a node whose replay pauses nor a
 * false confirmed slot looks like that. The node is asked again until its confirmed slot rises. A
 * node that does not answer proves nothing, and changes nothing.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { ClusterCounters } from "../counters.ts";
import {
  CONFIRMATION_BACK_SLOTS,
  CONFIRMATION_CHECK_MS,
  CONFIRMATION_STALL_MS,
  CONFIRMATION_STALL_SLOTS,
} from "../limits.ts";
import type { SlotEventKind, SlotSource } from "../ports.ts";
import type { Rpc } from "../rpc/rpc.ts";

export interface ConfirmationWatcherDeps {
  readonly clock: Clock;
  readonly rpc: Pick<Rpc, "confirmedSlot" | "slot">;
  readonly counters: Pick<ClusterCounters, "confirmationChecks" | "confirmationCheckFailures">;
  /** The confirmation stands still from now on, or no longer. Must not throw. */
  readonly onChange: (isStalled: boolean) => void;
}

/** What a source has reported since a confirmed slot rose. */
interface Reported {
  slot: number;
  /** New slots. */
  count: number;
}

export function createConfirmationWatcher(deps: ConfirmationWatcherDeps): ConfirmationWatcher {
  return new ConfirmationWatcher(deps);
}

export class ConfirmationWatcher {
  readonly #deps: ConfirmationWatcherDeps;
  /** One for each source at most. */
  readonly #reported = new Map<SlotSource, Reported>();
  /** The highest confirmed slot, and when it rose; -1 before the first. */
  #confirmedSlot = -1;
  #roseNs = 0;
  /** The node's last answer since then; -1 for none. */
  #answeredSlot = -1;
  #isStalled = false;
  #running = false;
  #timer: Timer | null = null;
  #pending = false;

  constructor(deps: ConfirmationWatcherDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#running = true;
  }

  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** A source reports a slot. */
  slotEvent(kind: SlotEventKind, slot: number, source: SlotSource): void {
    if (kind === "end" || !Number.isSafeInteger(slot)) return;
    const reported = this.#reported.get(source) ?? { slot: -1, count: 0 };
    if (slot > reported.slot) reported.count += 1;
    reported.slot = slot;
    this.#reported.set(source, reported);
    if (reported.count >= CONFIRMATION_STALL_SLOTS && this.#timer === null) this.#suspect();
  }

  /** A node reports a confirmed slot. */
  confirmed(slot: number): void {
    const back = this.#confirmedSlot - slot;
    if (back >= 0 && back <= CONFIRMATION_BACK_SLOTS) return;
    this.#rose(slot);
  }

  #rose(slot: number): void {
    this.#confirmedSlot = slot;
    this.#answeredSlot = -1;
    this.#roseNs = this.#deps.clock.nowNs();
    for (const reported of this.#reported.values()) reported.count = 0;
    this.#set(false);
  }

  /** Asks the node, at most every `CONFIRMATION_CHECK_MS`. */
  #suspect(): void {
    // Before the first confirmed slot nothing can be said to stand still.
    if (!this.#running || this.#pending || this.#confirmedSlot < 0) return;
    const { clock } = this.#deps;
    if (clock.nowNs() - this.#roseNs < CONFIRMATION_STALL_MS * NS_PER_MS) return;
    this.#pending = true;
    void this.#check().then(() => {
      this.#pending = false;
      if (!this.#running) return;
      this.#timer = clock.after(CONFIRMATION_CHECK_MS, () => {
        this.#timer = null;
        if (this.#isStalled) this.#suspect();
      });
    });
  }

  async #check(): Promise<void> {
    const { rpc, counters } = this.#deps;
    counters.confirmationChecks += 1;
    const roseNs = this.#roseNs;
    try {
      const [slot, processed] = await Promise.all([rpc.confirmedSlot(), rpc.slot()]);
      if (!this.#running) return;
      // Above its own answer before, although not above a report that may be false.
      if (this.#answeredSlot >= 0 && slot > this.#answeredSlot) this.#rose(slot);
      else this.confirmed(slot);
      if (this.#roseNs !== roseNs) return;
      this.#answeredSlot = slot;
      if (processed - slot >= CONFIRMATION_STALL_SLOTS) this.#set(true);
    } catch {
      // The next check may succeed.
      if (this.#running) counters.confirmationCheckFailures += 1;
    }
  }

  #set(isStalled: boolean): void {
    if (isStalled === this.#isStalled) return;
    this.#isStalled = isStalled;
    this.#deps.onChange(isStalled);
  }
}
