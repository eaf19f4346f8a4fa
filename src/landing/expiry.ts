/**
 * Decides when a transaction is too old for any leader, and when that is certain.
 *
 * A blockhash is valid for a number of blocks. The cluster client knows the last valid height of
 * those it saw; any other has a bound, because no blockhash can be younger than the newest block at
 * receipt. A durable nonce has no last height. To prove that an expired transaction did not land
 * takes a response that was requested after the height had passed, from a node that had reached
 * that slot, and that covers the time back to the previous such response.
 *
 * Decision: docs/decisions/0006-report-early-end-late.md
 */

import { type Clock, NS_PER_S } from "../core/clock.ts";
import { BLOCKHASH_AGE_MAX } from "../core/limits.ts";
import { DURABLE, type InFlightTable, UNKNOWN } from "./in-flight-table.ts";
import { BLOCKHASH_SLACK_BLOCKS, EXPIRY_MARGIN_BLOCKS, STATUS_SPAN_SLOTS } from "./limits.ts";
import type { ClusterView } from "./ports.ts";

export interface ExpiryDeps {
  readonly clock: Clock;
  readonly table: InFlightTable;
  readonly cluster: Pick<
    ClusterView,
    "blockHeight" | "blockHeightNs" | "currentSlot" | "lastValidHeight"
  >;
}

/** From this age on it matters when a transaction expires. */
const LOOKUP_AGE_NS = 2 * NS_PER_S;
/** Times that the chain is asked for a blockhash before it counts as unknown. */
const LOOKUPS_MAX = 4;
/** A height that is known for longer says little of what is the newest block. */
const HEIGHT_FRESH_NS = 2 * NS_PER_S;

export class Expiry {
  readonly #deps: ExpiryDeps;
  /** The newest block height that the cluster confirmed, and when it became known. */
  #height = UNKNOWN;
  #heightNs = 0;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
  }

  /** The newest height that is known; UNKNOWN before the first. */
  get height(): number {
    return this.#height;
  }

  /** Asks the chain for the height. */
  read(): void {
    const { cluster, clock } = this.#deps;
    const height = cluster.blockHeight() ?? UNKNOWN;
    // It goes back where what was believed before turned out to be wrong.
    if (height === UNKNOWN || height === this.#height) return;
    this.#height = height;
    this.#heightNs = cluster.blockHeightNs?.() ?? clock.nowNs();
  }

  /** Notes where the chain stands when a transaction is accepted. Hot path. */
  open(row: number, nowNs: number): void {
    const { table, cluster } = this.#deps;
    const slot = cluster.currentSlot(nowNs) ?? UNKNOWN;
    table.receivedSlot[row] = slot;
    table.absentSlot[row] = slot;
    table.receivedHeight[row] = this.#heightAt(nowNs);
  }

  /** Finds out when a transaction expires, and notes when it did. */
  check(row: number, nowNs: number): void {
    const { table } = this.#deps;
    if (table.is(row, DURABLE) || nowNs - (table.sinceNs[row] ?? 0) < LOOKUP_AGE_NS) return;
    if (table.lastValidHeight[row] === UNKNOWN) {
      table.lastValidHeight[row] = this.#lastValidHeightOf(row, nowNs);
    }
    this.#note(row);
  }

  /** Whether no leader takes the transaction any more, as far as is known. */
  isTooOld(row: number): boolean {
    const lastValid = this.#deps.table.lastValidHeight[row] ?? UNKNOWN;
    return lastValid !== UNKNOWN && this.#height > lastValid;
  }

  /** Whether the chain is past the transaction's last height for good, and that was noted. */
  isOver(row: number): boolean {
    return (this.#deps.table.expiredSlot[row] ?? UNKNOWN) !== UNKNOWN;
  }

  /**
   * A node at `slot` has no block with the transaction; it was asked at `heightAtRequest`. Returns
   * whether it may still land, expired, or expired and can no longer be proven not to have landed.
   */
  absent(row: number, slot: number, heightAtRequest: number): "open" | "expired" | "lost" {
    const { table } = this.#deps;
    const before = table.absentSlot[row] ?? UNKNOWN;
    // The height may have moved, or have been set back, since the row was looked at.
    const isPast = this.#note(row) && this.#isPast(row, heightAtRequest);
    // Without a slot in progress nobody can tell who lags behind.
    if (isPast && this.isOver(row) && slot >= (table.expiredSlot[row] ?? UNKNOWN)) {
      return before === UNKNOWN || slot - before <= STATUS_SPAN_SLOTS ? "expired" : "lost";
    }
    if (slot > before) table.absentSlot[row] = slot;
    return "open";
  }

  /** UNKNOWN when the feed is silent: a blockhash might be much younger than what it told last. */
  #heightAt(nowNs: number): number {
    return nowNs - this.#heightNs <= HEIGHT_FRESH_NS ? this.#height : UNKNOWN;
  }

  #lastValidHeightOf(row: number, nowNs: number): number {
    const { table, cluster } = this.#deps;
    const lookups = table.lookups[row] ?? 0;
    if (lookups < LOOKUPS_MAX) {
      table.lookups[row] = lookups + 1;
      return cluster.lastValidHeight(table.blockhash(row)) ?? UNKNOWN;
    }
    const known = table.receivedHeight[row] ?? UNKNOWN;
    const received = known === UNKNOWN ? this.#heightAt(nowNs) : known;
    table.receivedHeight[row] = received;
    if (received === UNKNOWN) return UNKNOWN;
    return received + BLOCKHASH_AGE_MAX + BLOCKHASH_SLACK_BLOCKS;
  }

  /** Notes the slot in which the last height was seen to be past; answers whether it is. */
  #note(row: number): boolean {
    const { table, cluster } = this.#deps;
    const isPast = this.#isPast(row, this.#height);
    if (!isPast) table.expiredSlot[row] = UNKNOWN;
    else if (table.expiredSlot[row] === UNKNOWN) {
      table.expiredSlot[row] = cluster.currentSlot() ?? UNKNOWN;
    }
    return isPast;
  }

  /** Whether the cluster is past the last height for good, forks and all. */
  #isPast(row: number, height: number): boolean {
    const lastValid = this.#deps.table.lastValidHeight[row] ?? UNKNOWN;
    return lastValid !== UNKNOWN && height > lastValid + EXPIRY_MARGIN_BLOCKS;
  }
}
