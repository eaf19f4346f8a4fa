/**
 * News of copies that fronts sent and the sender does not know of yet: an acknowledgement may be
 * quicker than the word of the front. Kept until the copy is adopted, for a second at most, because
 * a copy that the engine refused at once is never adopted.
 */

import { NS_PER_S } from "../core/clock.ts";
import { NEWS_EARLY_MAX } from "../core/front-limits.ts";
import { type Fate, FLYING } from "./transport.ts";

/** What is known of a copy. */
export interface News {
  /** When it went on the wire; 0: not told. */
  sentNs: number;
  /** Its end, and when that came; FLYING: not told. */
  fate: Fate;
  endNs: number;
  /** When the first of it happened. */
  readonly sinceNs: number;
}

export class EarlyNews {
  /** Kept for a second and never asked for: of refused copies. */
  aged = 0;
  /** Those that gave way to newer ones. */
  crowded = 0;
  /** The one that came first comes first. */
  readonly #news = new Map<number, News>();

  /** How many copies have news here. */
  get size(): number {
    return this.#news.size;
  }

  /** `cell` is where the stream's number was drawn, of which no number is drawn twice. */
  note(cell: number, stream: number, fate: Fate, atNs: number): void {
    const key = keyOf(cell, stream);
    let news = this.#news.get(key);
    if (news === undefined) {
      this.#makeRoom();
      news = { sentNs: 0, fate: FLYING, endNs: 0, sinceNs: atNs };
      this.#news.set(key, news);
    }
    if (fate === FLYING) {
      news.sentNs = atNs;
    } else {
      news.fate = fate;
      news.endNs = atNs;
    }
  }

  /** What is known of a copy, which is forgotten here; null: nothing. */
  take(cell: number, stream: number): News | null {
    if (this.#news.size === 0) return null;
    const key = keyOf(cell, stream);
    const news = this.#news.get(key) ?? null;
    if (news !== null) this.#news.delete(key);
    return news;
  }

  /** Forgets what is older than a second. */
  expire(nowNs: number): void {
    for (const [key, { sinceNs }] of this.#news) {
      if (nowNs - sinceNs < NS_PER_S) return;
      this.#news.delete(key);
      this.aged += 1;
    }
  }

  #makeRoom(): void {
    if (this.#news.size < NEWS_EARLY_MAX) return;
    for (const key of this.#news.keys()) {
      this.#news.delete(key);
      this.crowded += 1;
      return;
    }
  }
}

function keyOf(cell: number, stream: number): number {
  return cell * 2 ** 32 + stream;
}
