/**
 * One WebSocket connection to a node, and the subscriptions to slots over it, read on this thread;
 * with the native engine `native-feed.ts` stands in its place.
 *
 * Each feed is asked for once: libraries ask again in a tight loop where a node refuses, and throw
 * into a promise that nobody holds when it sends what they do not know. Here whatever makes no
 * sense is passed over, and so is what says only what was said last: a node tells of a slot's start
 * and of its end twice.
 */

import type { SlotEventKind } from "../ports.ts";
import { isCount, isRecord } from "../rpc/responses.ts";
import { openWebSocket } from "./websocket.ts";

/** Which events a node is asked to send. */
export type SlotSubscription = "slotsUpdates" | "slot";

export interface SlotSubscriberEvents {
  opened(): void;
  /** Not twice in a row the same of a feed. The slot is NaN where the node names none. */
  event(subscription: SlotSubscription, kind: SlotEventKind, slot: number): void;
  /** Once, whether it was ever open or not; not after `end`. */
  closed(): void;
}

/** One WebSocket connection; it does not come back by itself. */
export interface SlotSubscriber {
  /**
   * True when the node will send these events, false when it refuses to, when the connection ends,
   * and where it was asked for already.
   */
  subscribe(subscription: SlotSubscription): Promise<boolean>;
  end(): void;
}

/** What the updates of a node say about a slot; other kinds say nothing that is needed here. */
const UPDATE_KINDS: ReadonlyMap<unknown, SlotEventKind> = new Map([
  ["firstShredReceived", "start"],
  ["createdBank", "start"],
  ["completed", "end"],
  ["frozen", "end"],
]);

/** The place of each is its number for the native engine. */
export const SLOT_SUBSCRIPTIONS: readonly SlotSubscription[] = ["slotsUpdates", "slot"];

/** `timeoutMs` is for the handshake. */
export function openSlotSubscriber(
  url: string,
  timeoutMs: number,
  events: SlotSubscriberEvents,
): SlotSubscriber {
  /** Who waits for the answer to which question. */
  const pending = new Map<number, (accepted: boolean) => void>();
  const notify = createNotifier(events);
  let over = false;

  function refuseAll(): void {
    over = true;
    for (const resolve of pending.values()) resolve(false);
    pending.clear();
  }

  const socket = openWebSocket(url, timeoutMs, {
    opened: events.opened,
    message(text) {
      const message = recordIn(text);
      if (message === null) return;
      const { method, id } = message;
      if (typeof method === "string")
        handleNotification(notify, method, resultIn(message["params"]));
      else if (typeof id === "number") {
        const resolve = pending.get(id);
        pending.delete(id);
        resolve?.("result" in message);
      }
    },
    closed() {
      refuseAll();
      events.closed();
    },
  });

  return {
    subscribe(subscription) {
      const id = SLOT_SUBSCRIPTIONS.indexOf(subscription) + 1;
      const method = `${subscription}Subscribe`;
      return new Promise((resolve) => {
        if (over || pending.has(id)) {
          resolve(false);
          return;
        }
        pending.set(id, resolve);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params: [] }));
      });
    },
    end() {
      socket.end();
      refuseAll();
    },
  };
}

/** Tells of an event that says something new. */
type Notify = (subscription: SlotSubscription, kind: SlotEventKind, slot: unknown) => void;

function createNotifier(events: SlotSubscriberEvents): Notify {
  /** What was last told, for each feed and kind. */
  const lastSlots = new Map<string, number>();
  return (subscription, kind, named) => {
    const slot = isCount(named) ? named : Number.NaN;
    const key = `${subscription} ${kind}`;
    if (lastSlots.get(key) === slot) return;
    if (isCount(named)) lastSlots.set(key, named);
    events.event(subscription, kind, slot);
  };
}

function handleNotification(notify: Notify, method: string, result: Record<string, unknown>): void {
  const slot = result["slot"];
  if (method === "slotNotification") notify("slot", "start", slot);
  if (method !== "slotsUpdatesNotification") return;
  const kind = UPDATE_KINDS.get(result["type"]);
  if (kind !== undefined) notify("slotsUpdates", kind, slot);
}

function recordIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const message: unknown = JSON.parse(text);
    return isRecord(message) ? message : null;
  } catch {
    // A node that sends what is no JSON says nothing.
    return null;
  }
}

function resultIn(params: unknown): Record<string, unknown> {
  const result = isRecord(params) ? params["result"] : null;
  return isRecord(result) ? result : {};
}
