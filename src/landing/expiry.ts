/**
 * Decides when a transaction is too old for any leader, and when that is certain.
 *
 * A blockhash is valid for a number of blocks. The cluster client knows the last valid height of
 * those it saw; any other has a bound, because no blockhash can be younger than the newest block at
 * receipt. A durable nonce has no last height. To prove that an expired transaction did not land
 * takes a response that was requested after the height had passed, from a node that had reached
 * that slot, and that covers the time back to the previous such response; the first one covers the
 * time back to its blockhash, because another sender may have landed it before it was received.
 * Where the node does not keep statuses, it is proven if the blocks from the receipt to that slot
 * hold no transaction.
 *
 * Decision: docs/decisions/0006-report-early-end-late.md
 */

import { type Clock, NS_PER_S } from "../core/clock.ts";
import { BLOCKHASH_AGE_MAX } from "../core/limits.ts";
import type { BlockhashChecks } from "./blockhash-checks.ts";
import { DURABLE, type InFlightTable, KNOWN, PROCESSED, UNKNOWN } from "./in-flight-table.ts";
import {
  BLOCKHASH_SLACK_BLOCKS,
  EXPIRY_MARGIN_BLOCKS,
  SKIPPED_SHARE_MAX,
  STATUS_SPAN_SLOTS,
} from "./limits.ts";
import type { BlockContent, ClusterView } from "./ports.ts";

export interface ExpiryDeps {
  readonly clock: Clock;
  readonly table: InFlightTable;
  readonly blockhashes: Pick<BlockhashChecks, "check" | "slotOf">;
  readonly cluster: Pick<
    ClusterView,
    "blockHeight" | "blockHeightNs" | "currentSlot" | "lastValidHeight" | "contentOf"
  >;
}

/** Age from which on the expiry of a transaction is looked up. */
const LOOKUP_AGE_NS = 2 * NS_PER_S;
/** Lookups of a blockhash in the cluster client before it counts as unknown. */
const LOOKUPS_MAX = 4;
/** Age above which a height no longer bounds the newest block. */
const HEIGHT_FRESH_NS = 2 * NS_PER_S;

export class Expiry {
  readonly #deps: ExpiryDeps;
  /** The newest confirmed block height, when it became known, and the slot in progress then. */
  #height = UNKNOWN;
  #heightNs = 0;
  #heightSlot = UNKNOWN;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
  }

  /** The newest known height; UNKNOWN before the first. */
  get height(): number {
    return this.#height;
  }

  /** Reads the height from the cluster client. */
  read(): void {
    const { cluster, clock } = this.#deps;
    const height = cluster.blockHeight() ?? UNKNOWN;
    // A height that turned out to be wrong is replaced by a lower one.
    if (height === UNKNOWN || height === this.#height) return;
    this.#height = height;
    this.#heightNs = cluster.blockHeightNs?.() ?? clock.nowNs();
    this.#heightSlot = cluster.currentSlot(this.#heightNs) ?? UNKNOWN;
  }

  /** Records the slot and the height at which a transaction is accepted. Hot path. */
  open(row: number, nowNs: number): void {
    const { table, cluster } = this.#deps;
    const slot = cluster.currentSlot(nowNs) ?? UNKNOWN;
    table.receivedSlot[row] = slot;
    table.absentSlot[row] = slot;
    table.receivedHeight[row] = this.#heightAt(nowNs);
  }

  /** Looks up when a transaction expires, and records when it did. */
  check(row: number, nowNs: number): void {
    const { table } = this.#deps;
    if (table.is(row, DURABLE) || nowNs - (table.sinceNs[row] ?? 0) < LOOKUP_AGE_NS) return;
    if (table.lastValidHeight[row] === UNKNOWN) {
      table.lastValidHeight[row] = this.#lastValidHeightOf(row, nowNs);
      this.#reachBack(row);
    }
    this.#note(row);
    this.#checkBlockhash(row, nowNs);
  }

  /** Whether the cluster is proven not to know the transaction's blockhash. */
  isUnknown(row: number): boolean {
    return (this.#deps.table.unknownSlot[row] ?? UNKNOWN) !== UNKNOWN;
  }

  /** Whether no leader accepts it: its blockhash is unknown, or the newest known height past it. */
  isTooOld(row: number): boolean {
    if (this.isUnknown(row)) return true;
    const lastValid = this.#deps.table.lastValidHeight[row] ?? UNKNOWN;
    return lastValid !== UNKNOWN && this.#height > lastValid;
  }

  /** Whether the cluster was recorded as past the last valid height, including the margin. */
  isOver(row: number): boolean {
    return (this.#deps.table.expiredSlot[row] ?? UNKNOWN) !== UNKNOWN;
  }

  /** What the blocks hold from the transaction's receipt until it had expired. */
  contentUntilExpiry(row: number): BlockContent {
    const { table, cluster } = this.#deps;
    const estimated = table.receivedSlot[row] ?? UNKNOWN;
    const expired = table.expiredSlot[row] ?? UNKNOWN;
    if (estimated === UNKNOWN || expired === UNKNOWN) return "unknown";
    // The estimate may have been ahead; later announcements show by how much.
    const shown = cluster.currentSlot(table.sinceNs[row] ?? 0) ?? estimated;
    return cluster.contentOf(Math.min(estimated, shown), expired);
  }

  /**
   * A node at `slot` reports no block with the transaction; the request was made at
   * `heightAtRequest`. Returns `open` if the transaction may still land, `expired` if it is proven
   * not to have landed, `lost` if it is too old and this can no longer be proven.
   */
  absent(row: number, slot: number, heightAtRequest: number): "open" | "expired" | "lost" {
    const { table } = this.#deps;
    const isCovered = this.isCovered(row, slot);
    // The height may have changed in either direction since the row was checked.
    const isPast = this.#note(row) && this.#isPast(row, heightAtRequest);
    // Without a known slot in progress a lagging node cannot be recognized.
    if (isPast && this.isOver(row) && slot >= (table.expiredSlot[row] ?? UNKNOWN)) {
      return isCovered ? "expired" : "lost";
    }
    // No later response covers a gap.
    if (isCovered) table.absentSlot[row] = Math.max(slot, table.absentSlot[row] ?? UNKNOWN);
    return "open";
  }

  /** Whether a node's statuses at that slot reach back to the newest response without the row. */
  isCovered(row: number, slot: number): boolean {
    const before = this.#deps.table.absentSlot[row] ?? UNKNOWN;
    return before === UNKNOWN || slot - before <= STATUS_SPAN_SLOTS;
  }

  /** Has the next response reach back to the block of its blockhash, which is known by now. */
  #reachBack(row: number): void {
    const { table } = this.#deps;
    const lastValid = table.lastValidHeight[row] ?? UNKNOWN;
    const receivedSlot = table.receivedSlot[row] ?? UNKNOWN;
    if (lastValid === UNKNOWN || receivedSlot === UNKNOWN || this.#heightSlot === UNKNOWN) return;
    // The height may be from long before the receipt, so its own slot counts.
    const blocks = this.#height - (lastValid - BLOCKHASH_AGE_MAX);
    const firstSlot = this.#heightSlot - Math.ceil(blocks / (1 - SKIPPED_SHARE_MAX));
    if (firstSlot < receivedSlot) table.absentSlot[row] = firstSlot;
  }

  /** UNKNOWN if the last height is old: the blockhash may be from a much later block. */
  #heightAt(nowNs: number): number {
    return nowNs - this.#heightNs <= HEIGHT_FRESH_NS ? this.#height : UNKNOWN;
  }

  #lastValidHeightOf(row: number, nowNs: number): number {
    const { table, cluster } = this.#deps;
    const lookups = table.lookups[row] ?? 0;
    const known = table.receivedHeight[row] ?? UNKNOWN;
    const received = known === UNKNOWN ? this.#heightAt(nowNs) : known;
    table.receivedHeight[row] = received;
    if (lookups < LOOKUPS_MAX) {
      table.lookups[row] = lookups + 1;
      const lastValid = cluster.lastValidHeight(table.blockhash(row));
      if (lastValid !== null) table.raise(row, KNOWN);
      return lastValid ?? UNKNOWN;
    }
    if (received === UNKNOWN) return UNKNOWN;
    return received + BLOCKHASH_AGE_MAX + BLOCKHASH_SLACK_BLOCKS;
  }

  /** Asks the node about a blockhash that was in none of the blocks learned from it. */
  #checkBlockhash(row: number, nowNs: number): void {
    const { table, blockhashes } = this.#deps;
    const isOpen = !table.is(row, KNOWN | PROCESSED) && !this.isUnknown(row);
    if (!isOpen || (table.lookups[row] ?? 0) < LOOKUPS_MAX) return;
    const blockhash = table.blockhash(row);
    const slot = table.receivedSlot[row] ?? UNKNOWN;
    const result = blockhashes.check(blockhash, table.accountOf(row), slot, nowNs);
    if (result === "known") {
      table.raise(row, KNOWN);
      // The node lagged and gave the height at receipt, so the bound may be too low.
      table.lookups[row] = 0;
      table.lastValidHeight[row] = UNKNOWN;
    }
    if (result === "unknown") table.unknownSlot[row] = blockhashes.slotOf(blockhash);
  }

  /** Records the first slot in which the last valid height is past; returns whether it is. */
  #note(row: number): boolean {
    const { table, cluster } = this.#deps;
    const isPast = this.#isPast(row, this.#height);
    if (!isPast) table.expiredSlot[row] = UNKNOWN;
    else if (table.expiredSlot[row] === UNKNOWN) {
      table.expiredSlot[row] = cluster.currentSlot() ?? UNKNOWN;
    }
    return isPast;
  }

  /** Whether `height` is past the last valid height by more than any fork can take back. */
  #isPast(row: number, height: number): boolean {
    const lastValid = this.#deps.table.lastValidHeight[row] ?? UNKNOWN;
    return lastValid !== UNKNOWN && height > lastValid + EXPIRY_MARGIN_BLOCKS;
  }
}
