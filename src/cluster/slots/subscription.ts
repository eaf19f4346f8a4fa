/**
 * One WebSocket connection to a node and its slot subscriptions.
 *
 * Each subscription is requested once: libraries retry in a tight loop if a node rejects, and
 * reject a promise without a handler when it sends something unknown. Here invalid messages are
 * ignored, and so are repetitions: a node reports a slot's start and its end twice.
 */

import type { SlotEventKind } from "../ports.ts";
import { isCount, isRecord } from "../rpc/responses.ts";
import { openWebSocket } from "./websocket.ts";

/** Which events a node is asked to send. */
export type SlotSubscription = "slotsUpdates" | "slot";

export interface SlotSubscriberEvents {
  opened(): void;
  /**
   * Never the same event of a subscription twice in a row. The slot is NaN if the node names none.
   */
  event(subscription: SlotSubscription, kind: SlotEventKind, slot: number): void;
  /** Called once, whether or not it was ever open; not after `end`. */
  closed(): void;
}

/** One WebSocket connection; it does not reconnect. */
export interface SlotSubscriber {
  /**
   * True if the node will send these events; false if it rejects, if the connection ends, or if
   * they were already requested.
   */
  subscribe(subscription: SlotSubscription): Promise<boolean>;
  end(): void;
}

/** Slot event of each update type; other types are not needed. */
const UPDATE_KINDS: ReadonlyMap<unknown, SlotEventKind> = new Map([
  ["firstShredReceived", "start"],
  ["createdBank", "start"],
  ["completed", "end"],
  ["frozen", "end"],
]);

/** Each is requested under its index plus one. */
const SLOT_SUBSCRIPTIONS: readonly SlotSubscription[] = ["slotsUpdates", "slot"];

/** `timeoutMs` limits the handshake. */
export function openSlotSubscriber(
  url: string,
  timeoutMs: number,
  events: SlotSubscriberEvents,
): SlotSubscriber {
  /** Callers waiting for a response, by request id. */
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

/** Reports an event unless it is a repetition. */
type Notify = (subscription: SlotSubscription, kind: SlotEventKind, slot: unknown) => void;

function createNotifier(events: SlotSubscriberEvents): Notify {
  /** The last slot reported, by subscription and kind. */
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
    // Text that is not JSON is ignored.
    return null;
  }
}

function resultIn(params: unknown): Record<string, unknown> {
  const result = isRecord(params) ? params["result"] : null;
  return isRecord(result) ? result : {};
}
