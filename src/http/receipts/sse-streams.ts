/**
 * An account's receipts as server-sent events, one for each change of state. A stream is a number
 * in the log of changes and goes on from there a few dozen times a second, in bounded steps, so
 * nothing is added to the way of a transaction and a slow client costs no memory. Those that have
 * read all there was are told together (receipt-live), the others read on alone:
 *
 *   open ─▶ reading ◀─▶ stalled: the client takes in too slowly; it goes on where it was
 *              │           └─▶ cut when that lasts, or when its key is gone
 *              └─▶ ended when this edge drains
 *
 * The number is the event's id. A client that comes back with `Last-Event-ID` goes on behind it;
 * where changes in between are no longer kept, an event `gap` says so.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { ReceiptState } from "../../core/receipt-state.ts";
import {
  RECEIPT_STREAM_ALONE_STEPS_MAX,
  RECEIPT_STREAM_CHARS_PER_ROUND,
  RECEIPT_STREAM_STALL_MS_MAX,
  RECEIPT_STREAM_STEPS_PER_ROUND,
  RECEIPT_STREAMS_MAX,
  RECEIPT_STREAMS_PER_ACCOUNT_MAX,
} from "../limits.ts";
import { Quota } from "./quota.ts";
import type { ReceiptSource } from "./source.ts";
import { createLive, type Listener } from "./sse-broadcast.ts";

export interface StreamsDeps {
  readonly clock: Clock;
  readonly receipts: Pick<ReceiptSource, "changes" | "readChanges" | "eachChange">;
  /** Has all that happened so far noted in the receipts; called before each round. */
  readonly flushEvents?: () => void;
}

/** The way to one client. */
export interface SseConnection {
  /** Writes; false when the client takes in more slowly than it is given. */
  write(text: string): boolean;
  /** Ends the stream after what was written. */
  end(): void;
  /** Ends it at once. */
  abort(): void;
  /** Whether the key that it was opened with is still good. */
  isKeyValid(): boolean;
}

export interface StreamRequest {
  readonly account: string;
  readonly states: readonly ReceiptState[] | null;
  /** `Last-Event-ID`, "" for none. */
  readonly lastEventId: string;
}

export interface Stream {
  /** The client has taken in all that was written. */
  drained(): void;
  /** The client left. */
  left(): void;
}

export interface Streams {
  /**
   * Opens a stream: calls `begin`, then writes its first lines. Else answers whose bound is
   * reached, and calls nothing.
   */
  open(
    request: StreamRequest,
    connection: SseConnection,
    start: () => void,
  ): Stream | "account" | "all";
  /** Ends all streams. */
  drain(): void;
  readonly counters: StreamCounters;
}

export interface StreamCounters {
  /** Streams open now. */
  open: number;
  opened: number;
  /** Events written. */
  events: number;
  /** Streams cut because their client took in too little, or because their key is gone. */
  closedSlow: number;
  closedKey: number;
  /** Streams that went on behind changes that are no longer kept. */
  gaps: number;
  /** Not opened, because too many are. */
  refused: number;
}

interface Open extends Listener {
  readonly connection: SseConnection;
  /** Since when the client has not taken in what was written; 0: it has. */
  stalledNs: number;
  /** When something was written last, and when its key was looked at last. */
  wroteNs: number;
  checkedNs: number;
}

export function createStreams(deps: StreamsDeps): Streams {
  const { clock, receipts, flushEvents = (): void => {} } = deps;
  const { changes } = receipts;
  /** Tells the ids of this process from those of one before. */
  const epoch = Math.round(clock.unixMs()).toString(36);
  const streams = new Set<Open>();
  const live = createLive<Open>(receipts, eventOf);
  const quota = new Quota(RECEIPT_STREAMS_MAX, RECEIPT_STREAMS_PER_ACCOUNT_MAX);
  const counters: StreamCounters = {
    open: 0,
    opened: 0,
    events: 0,
    closedSlow: 0,
    closedKey: 0,
    gaps: 0,
    refused: 0,
  };
  let timer: Timer | null = null;

  function release(stream: Open): boolean {
    if (!streams.delete(stream)) return false;
    live.remove(stream);
    quota.release(stream.account);
    counters.open = streams.size;
    if (streams.size > 0) return true;
    timer?.cancel();
    timer = null;
    return true;
  }

  function write(stream: Open, text: string, nowNs: number): void {
    stream.wroteNs = nowNs;
    if (!stream.connection.write(text)) stream.stalledNs = nowNs;
  }

  /** The lines that say what was missed, if anything; the stream goes on with what is kept. */
  function gapOf(stream: Open): string {
    if (stream.next >= changes.first && stream.next <= changes.next) return "";
    counters.gaps += 1;
    stream.next = stream.next > changes.next ? changes.next : changes.first;
    return `event: gap\ndata: ${GAP}\n\n`;
  }

  function eventOf(number: number, receipt: object): string {
    return `id: ${epoch}-${number}\nevent: receipt\ndata: ${JSON.stringify(receipt)}\n\n`;
  }

  /** What it reads alone, in so many steps at most. */
  function readAlone(stream: Open, stepsMax: number): string {
    let text = gapOf(stream);
    const { account, next, states } = stream;
    stream.next = receipts.readChanges(account, next, { states, stepsMax }, (number, receipt) => {
      counters.events += 1;
      text += eventOf(number, receipt);
      return text.length < RECEIPT_STREAM_CHARS_PER_ROUND;
    });
    return text;
  }

  function round(): void {
    flushEvents();
    const nowNs = clock.nowNs();
    closeStale(nowNs);
    counters.events += live.tell(takesIn);
    const behind = [...streams].filter((stream) => stream.text === "" && !live.isAtHead(stream));
    // The nearest first: in turns, many that are far behind would each read less than comes.
    behind.sort((a, b) => b.next - a.next);
    for (const stream of streams) if (takesIn(stream)) serve(stream, nowNs);
    let stepsLeft = RECEIPT_STREAM_ALONE_STEPS_MAX;
    for (const stream of behind) {
      if (stepsLeft === 0) break;
      if (!takesIn(stream) || !streams.has(stream)) continue;
      const from = stream.next;
      const stepsMax = Math.min(RECEIPT_STREAM_STEPS_PER_ROUND, stepsLeft);
      const text = readAlone(stream, stepsMax);
      // An account without receipts goes over all of them in one.
      stepsLeft -= Math.min(stepsMax, Math.max(1, stream.next - from));
      if (text !== "") write(stream, text, nowNs);
    }
  }

  /** Cuts those that may not go on. */
  function closeStale(nowNs: number): void {
    for (const stream of streams) {
      if (stream.stalledNs !== 0) {
        if (nowNs - stream.stalledNs < RECEIPT_STREAM_STALL_MS_MAX * NS_PER_MS) continue;
        counters.closedSlow += 1;
        abort(stream);
      } else if (nowNs - stream.checkedNs >= CHECK_NS && !stream.connection.isKeyValid()) {
        counters.closedKey += 1;
        abort(stream);
      } else if (nowNs - stream.checkedNs >= CHECK_NS) stream.checkedNs = nowNs;
    }
  }

  /** Writes what it was told, or a sign of life. */
  function serve(stream: Open, nowNs: number): void {
    const { text } = stream;
    stream.text = "";
    if (text !== "") write(stream, text, nowNs);
    else if (nowNs - stream.wroteNs >= HEARTBEAT_NS) {
      // An id without data moves the client's Last-Event-ID on, so that it stays within what is
      // kept although nothing of its account happens.
      write(stream, `:\nid: ${epoch}-${stream.next - 1}\n\n`, nowNs);
    }
  }

  function abort(stream: Open): void {
    release(stream);
    stream.connection.abort();
  }

  /** The change behind the one with that id. */
  function resumeAt(lastEventId: string): number {
    if (lastEventId === "") return changes.next;
    const [, of, number] = EVENT_ID.exec(lastEventId) ?? [];
    // Of another process, or no id of ours: all that is kept may have been missed.
    return of === epoch ? Number(number) + 1 : 0;
  }

  return {
    counters,
    open({ account, states, lastEventId }, connection, start) {
      const full = quota.acquire(account);
      if (full !== null) {
        counters.refused += 1;
        return full;
      }
      const nowNs = clock.nowNs();
      const stream: Open = {
        account,
        states,
        connection,
        next: resumeAt(lastEventId),
        text: "",
        stalledNs: 0,
        wroteNs: nowNs,
        checkedNs: nowNs,
      };
      live.add(stream);
      streams.add(stream);
      counters.open = streams.size;
      counters.opened += 1;
      timer ??= clock.every(ROUND_MS, round);
      start();
      write(stream, `retry: ${RETRY_MS}\n\n${gapOf(stream)}`, nowNs);
      return {
        drained() {
          stream.stalledNs = 0;
        },
        left: () => void release(stream),
      };
    },
    drain() {
      for (const stream of streams) {
        if (stream.stalledNs === 0) {
          const last = readAlone(stream, RECEIPT_STREAM_STEPS_PER_ROUND);
          write(stream, last + DRAINING, clock.nowNs());
        }
        release(stream);
        stream.connection.end();
      }
    },
  };
}

/** Whether what is written to it gets away. */
function takesIn(stream: Open): boolean {
  return stream.stalledNs === 0;
}

/** Between two rounds of writing. */
const ROUND_MS = 20;
/** The HTTP library closes a connection that is idle for 8 s or more, many proxies after 30. */
const HEARTBEAT_NS = 5_000 * NS_PER_MS;
const CHECK_NS = 5_000 * NS_PER_MS;
/** When a client shall come back after its stream ended. */
const RETRY_MS = 1_000;
const EVENT_ID = /^([0-9a-z]{1,12})-(\d{1,15})$/;
const GAP = JSON.stringify({
  message: "changes may have been missed that are no longer kept; /api/v1/transactions lists all",
});
const DRAINING = ": this edge is draining, come back to reach another one\n\n";
