/**
 * How the cluster's slots pass, shared by all parts of the slot clock: with Tower BFT by the clock;
 * with Alpenglow, and in the migration to it, they may also stop, and go back.
 */

export class SlotPace {
  /** Whether the cluster's slots may stop and go back at any time. */
  mayStop = true;
  /** Whether they are likely to go back now, because the cluster confirms nothing. */
  isBackLikely = false;

  get isByClock(): boolean {
    return !this.mayStop && !this.isBackLikely;
  }
}
