/**
 * The feed of slots as the native engine has it: its WebSocket is opened, read and understood on a
 * thread of its own, and this thread is woken for news alone. What it does is what `feed-socket.ts`
 * does over ws. A node that says more than can be taken does not keep this thread from its clients:
 * so much is taken in a turn, and what there is no room for meanwhile is lost and counted.
 *
 * The deadline of the handshake is kept by the engine's clock. It does not keep the process alive.
 */

import { FEED_NEWS, FEED_NUMBERS, type NativeFeeding, OK } from "../../native/contract.ts";
import type { ChainCounters } from "../counters.ts";
import { FEED_NEWS_A_TURN } from "../limits.ts";
import { bareAddress } from "../rpc/url-without-credentials.ts";
import { FEEDS, type FeedEvents, type FeedName, type FeedSocket } from "./subscription.ts";

export interface NativeFeedDeps {
  readonly native: NativeFeeding;
  readonly counters: Pick<ChainCounters, "slotEventsLost">;
}

/** `timeoutMs` is for the handshake. Nothing is thrown; what fails is told by `closed`. */
export function openNativeFeed(
  deps: NativeFeedDeps,
  url: string,
  timeoutMs: number,
  events: FeedEvents,
): FeedSocket {
  return new NativeFeed(deps, url, timeoutMs, events);
}

class NativeFeed implements FeedSocket {
  readonly #deps: NativeFeedDeps;
  readonly #events: FeedEvents;
  /** Who waits for the answer, by the feed's number. */
  readonly #asked: (((accepted: boolean) => void) | null)[] = FEEDS.map(() => null);
  readonly #numbers = new Float64Array(FEED_NUMBERS);
  /** Not above 0 where it could not be opened. */
  readonly #feed: number;
  #lost = 0;
  #over = false;
  /** Whether the rest is taken in the next turn anyway. */
  #goesOn = false;
  readonly #goOn = (): void => {
    this.#goesOn = false;
    this.#drain();
  };

  constructor(deps: NativeFeedDeps, url: string, timeoutMs: number, events: FeedEvents) {
    this.#deps = deps;
    this.#events = events;
    const { href, authorization } = bareAddress(url);
    const wake = (): void => this.#drain();
    this.#feed = deps.native.feedOpen(href, authorization, timeoutMs, wake);
    // Whoever opens it does not have it yet.
    if (this.#feed <= 0) queueMicrotask(() => this.#close());
  }

  subscribe(feed: FeedName): Promise<boolean> {
    return new Promise((resolve) => {
      const which = FEEDS.indexOf(feed);
      const isAsked = !this.#over && this.#deps.native.feedSubscribe(this.#feed, which) === OK;
      if (isAsked) this.#asked[which] = resolve;
      else resolve(false);
    });
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#feed > 0) this.#deps.native.feedClose(this.#feed);
    for (let which = 0; which < FEEDS.length; which += 1) this.#answer(which, false);
  }

  #close(): void {
    if (this.#over) return;
    this.end();
    this.#events.closed();
  }

  #drain(): void {
    if (this.#goesOn) return;
    const { native, counters } = this.#deps;
    const numbers = this.#numbers;
    for (let taken = 0; !this.#over; taken += 1) {
      if (taken === FEED_NEWS_A_TURN) {
        this.#goesOn = true;
        setImmediate(this.#goOn);
        return;
      }
      if (native.feedNext(this.#feed, numbers) !== 1) return;
      const lost = numbers[3] ?? 0;
      counters.slotEventsLost += lost - this.#lost;
      this.#lost = lost;
      this.#take(numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0);
    }
  }

  #take(what: number, which: number, slot: number): void {
    if (what === FEED_NEWS.start) this.#events.event(FEEDS[which] ?? "slot", "start", slot);
    else if (what === FEED_NEWS.end) this.#events.event(FEEDS[which] ?? "slot", "end", slot);
    else if (what === FEED_NEWS.opened) this.#events.opened();
    else if (what === FEED_NEWS.closed) this.#close();
    else this.#answer(which, what === FEED_NEWS.accepted);
  }

  #answer(which: number, accepted: boolean): void {
    const answer = this.#asked[which] ?? null;
    this.#asked[which] = null;
    answer?.(accepted);
  }
}
