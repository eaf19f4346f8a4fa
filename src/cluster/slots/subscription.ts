/**
 * One WebSocket connection to a node, and the subscriptions to slots over it, read on this thread;
 * with the native engine `native-feed.ts` stands in its place.
 *
 * Each feed is asked for once: libraries ask again in a tight loop where a node refuses, and throw
 * into a promise that nobody holds when it sends what they do not know. Here whatever makes no
 * sense is passed over, and so is what says only what was said last: a node tells of a slot's start
 * and of its end twice.
 */

import { isCount, isRecord } from "../rpc/responses.ts";
import type { SlotEventKind } from "../target.ts";
import { openWebSocket } from "./websocket.ts";

/** Which events a node is asked to send. */
export type FeedName = "slotsUpdates" | "slot";

export interface FeedEvents {
  opened(): void;
  /** Not twice in a row the same of a feed. The slot is NaN where the node names none. */
  event(feed: FeedName, kind: SlotEventKind, slot: number): void;
  /** Once, whether it was ever open or not; not after `end`. */
  closed(): void;
}

/** One WebSocket connection; it does not come back by itself. */
export interface FeedSocket {
  /**
   * True when the node will send these events, false when it refuses to, when the connection ends,
   * and where it was asked for already.
   */
  subscribe(feed: FeedName): Promise<boolean>;
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
export const FEEDS: readonly FeedName[] = ["slotsUpdates", "slot"];

/** `timeoutMs` is for the handshake. */
export function openFeed(url: string, timeoutMs: number, events: FeedEvents): FeedSocket {
  /** Who waits for the answer to which question. */
  const asked = new Map<number, (accepted: boolean) => void>();
  const news = createNews(events);
  let over = false;

  function refuseAll(): void {
    over = true;
    for (const answer of asked.values()) answer(false);
    asked.clear();
  }

  const socket = openWebSocket(url, timeoutMs, {
    opened: events.opened,
    message(text) {
      const message = recordIn(text);
      if (message === null) return;
      const { method, id } = message;
      if (typeof method === "string") notified(news, method, resultIn(message["params"]));
      else if (typeof id === "number") {
        const answer = asked.get(id);
        asked.delete(id);
        answer?.("result" in message);
      }
    },
    closed() {
      refuseAll();
      events.closed();
    },
  });

  return {
    subscribe(feed) {
      const id = FEEDS.indexOf(feed) + 1;
      const method = `${feed}Subscribe`;
      return new Promise((resolve) => {
        if (over || asked.has(id)) {
          resolve(false);
          return;
        }
        asked.set(id, resolve);
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
type News = (feed: FeedName, kind: SlotEventKind, slot: unknown) => void;

function createNews(events: FeedEvents): News {
  /** What was last told, for each feed and kind. */
  const told = new Map<string, number>();
  return (feed, kind, named) => {
    const slot = isCount(named) ? named : Number.NaN;
    const key = `${feed} ${kind}`;
    if (told.get(key) === slot) return;
    if (isCount(named)) told.set(key, named);
    events.event(feed, kind, slot);
  };
}

function notified(news: News, method: string, result: Record<string, unknown>): void {
  const slot = result["slot"];
  if (method === "slotNotification") news("slot", "start", slot);
  if (method !== "slotsUpdatesNotification") return;
  const kind = UPDATE_KINDS.get(result["type"]);
  if (kind !== undefined) news("slotsUpdates", kind, slot);
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
