/**
 * Slot subscriptions through the native engine: a separate thread opens, reads and decodes the
 * WebSocket, and wakes this thread only for events. Behaves as `subscription.ts` does over ws. A
 * flooding node does not block this thread: the events per turn are limited, and those that exceed
 * the buffer meanwhile are lost and counted.
 *
 * The engine's clock enforces the handshake deadline. The connection does not keep the process
 * alive.
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

/** `timeoutMs` limits the handshake. Does not throw; failures are reported through `closed`. */
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
  /** Callers waiting for the response, by subscription number. */
  readonly #pending: (((accepted: boolean) => void) | null)[] = SLOT_SUBSCRIPTIONS.map(() => null);
  readonly #numbers = new Float64Array(SLOT_NOTIFICATION_NUMBERS);
  /** Not above 0 if opening failed. */
  readonly #subscription: number;
  #lost = 0;
  #over = false;
  /** Whether a further drain is scheduled for the next turn. */
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
    // The caller does not have the object yet.
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
