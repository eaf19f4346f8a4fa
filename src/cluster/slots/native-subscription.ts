/**
 * The feed of slots as the native engine has it: its WebSocket is opened, read and understood on a
 * thread of its own, and this thread is woken for news alone. What it does is what `feed-socket.ts`
 * does over ws. A node that says more than can be taken does not keep this thread from its clients:
 * so much is taken in a turn, and what there is no room for meanwhile is lost and counted.
 *
 * The deadline of the handshake is kept by the engine's clock. It does not keep the process alive.
 */

import {
  type NativeSlotSubscribing,
  OK,
  SLOT_NOTIFICATION,
  SLOT_NOTIFICATION_NUMBERS,
} from "../../native/contract.ts";
import type { ClusterCounters } from "../counters.ts";
import { SLOT_NOTIFICATIONS_PER_SLICE } from "../limits.ts";
import { urlWithoutCredentials } from "../rpc/url-without-credentials.ts";
import {
  SLOT_SUBSCRIPTIONS,
  type SlotSubscriber,
  type SlotSubscriberEvents,
  type SlotSubscription,
} from "./subscription.ts";

export interface NativeSlotSubscriberDeps {
  readonly native: NativeSlotSubscribing;
  readonly counters: Pick<ClusterCounters, "slotEventsLost">;
}

/** `timeoutMs` is for the handshake. Nothing is thrown; what fails is told by `closed`. */
export function openNativeSlotSubscriber(
  deps: NativeSlotSubscriberDeps,
  url: string,
  timeoutMs: number,
  events: SlotSubscriberEvents,
): SlotSubscriber {
  return new NativeSlotSubscriber(deps, url, timeoutMs, events);
}

class NativeSlotSubscriber implements SlotSubscriber {
  readonly #deps: NativeSlotSubscriberDeps;
  readonly #events: SlotSubscriberEvents;
  /** Who waits for the answer, by the feed's number. */
  readonly #pending: (((accepted: boolean) => void) | null)[] = SLOT_SUBSCRIPTIONS.map(() => null);
  readonly #numbers = new Float64Array(SLOT_NOTIFICATION_NUMBERS);
  /** Not above 0 where it could not be opened. */
  readonly #subscription: number;
  #lost = 0;
  #over = false;
  /** Whether the rest is taken in the next turn anyway. */
  #drainPending = false;
  readonly #drainRest = (): void => {
    this.#drainPending = false;
    this.#drain();
  };

  constructor(
    deps: NativeSlotSubscriberDeps,
    url: string,
    timeoutMs: number,
    events: SlotSubscriberEvents,
  ) {
    this.#deps = deps;
    this.#events = events;
    const { href, authorization } = urlWithoutCredentials(url);
    const wake = (): void => this.#drain();
    this.#subscription = deps.native.slotSubscriberOpen(href, authorization, timeoutMs, wake);
    // Whoever opens it does not have it yet.
    if (this.#subscription <= 0) queueMicrotask(() => this.#close());
  }

  subscribe(subscription: SlotSubscription): Promise<boolean> {
    return new Promise((resolve) => {
      const which = SLOT_SUBSCRIPTIONS.indexOf(subscription);
      const isPending =
        !this.#over && this.#deps.native.slotSubscriberSubscribe(this.#subscription, which) === OK;
      if (isPending) this.#pending[which] = resolve;
      else resolve(false);
    });
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#subscription > 0) this.#deps.native.slotSubscriberClose(this.#subscription);
    for (let which = 0; which < SLOT_SUBSCRIPTIONS.length; which += 1) this.#resolve(which, false);
  }

  #close(): void {
    if (this.#over) return;
    this.end();
    this.#events.closed();
  }

  #drain(): void {
    if (this.#drainPending) return;
    const { native, counters } = this.#deps;
    const numbers = this.#numbers;
    for (let handled = 0; !this.#over; handled += 1) {
      if (handled === SLOT_NOTIFICATIONS_PER_SLICE) {
        this.#drainPending = true;
        setImmediate(this.#drainRest);
        return;
      }
      if (native.slotSubscriberNext(this.#subscription, numbers) !== 1) return;
      const lost = numbers[3] ?? 0;
      counters.slotEventsLost += lost - this.#lost;
      this.#lost = lost;
      this.#handle(numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0);
    }
  }

  #handle(what: number, which: number, slot: number): void {
    if (what === SLOT_NOTIFICATION.start)
      this.#events.event(SLOT_SUBSCRIPTIONS[which] ?? "slot", "start", slot);
    else if (what === SLOT_NOTIFICATION.end)
      this.#events.event(SLOT_SUBSCRIPTIONS[which] ?? "slot", "end", slot);
    else if (what === SLOT_NOTIFICATION.opened) this.#events.opened();
    else if (what === SLOT_NOTIFICATION.closed) this.#close();
    else this.#resolve(which, what === SLOT_NOTIFICATION.accepted);
  }

  #resolve(which: number, accepted: boolean): void {
    const resolve = this.#pending[which] ?? null;
    this.#pending[which] = null;
    resolve?.(accepted);
  }
}
