/**
 * An account's receipts as server-sent events, one per change of state. A stream is an index into
 * the log of changes and advances every 20 ms in bounded steps, so the submission path does no
 * extra work and a slow client costs no memory. Streams that have caught up are served together
 * (sse-broadcast.ts), the others read alone:
 *
 *   open ─▶ reading ◀─▶ stalled: the client reads too slowly; it resumes where it was
 *     │      ▲   │          └─▶ closed when that lasts, or when its key is no longer valid
 *     │      │   └─▶ ended when this edge drains
 *     └─▶ waiting: the replaced process has not yet said where its streams ended
 *
 * The number is the event's id. A client that reconnects with `Last-Event-ID` continues after it;
 * where changes in between are no longer kept, an event `gap` reports it.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { ReceiptSource } from "../../core/receipt-source.ts";
import type { ReceiptState } from "../../core/receipt-state.ts";
import {
  RECEIPT_STREAM_ALONE_STEPS_MAX,
  RECEIPT_STREAM_CHARS_PER_ROUND,
  RECEIPT_STREAM_RESUME_MS_MAX,
  RECEIPT_STREAM_STALL_MS_MAX,
  RECEIPT_STREAM_STEPS_PER_ROUND,
  RECEIPT_STREAMS_MAX,
  RECEIPT_STREAMS_PER_ACCOUNT_MAX,
} from "../limits.ts";
import { Quota } from "./quota.ts";
import { createLive, type Listener } from "./sse-broadcast.ts";

export interface StreamsDeps {
  readonly clock: Clock;
  readonly receipts: Pick<ReceiptSource, "changes" | "readChanges" | "eachChange">;
  /** Brings receipts up to date; called before each round. */
  readonly flushEvents?: () => void;
}

/** The connection to one client. */
export interface SseConnection {
  /** Writes; false when the client reads more slowly than data is written. */
  write(text: string): boolean;
  /** Ends the stream after what was written. */
  end(): void;
  /** Closes the connection immediately. */
  abort(): void;
  /** Whether the key that opened the stream is still valid. */
  isKeyValid(): boolean;
}

export interface StreamRequest {
  readonly account: string;
  readonly states: readonly ReceiptState[] | null;
  /** `Last-Event-ID`; "" for none. */
  readonly lastEventId: string;
}

export interface Stream {
  /** The client has read everything written. */
  drained(): void;
  /** The client disconnected. */
  left(): void;
}

export interface Streams {
  /**
   * Opens a stream: calls `start`, then writes its first lines. When a quota is exhausted, returns
   * whose it is and calls nothing.
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
  /** Streams closed because the client read too slowly, or because the key is no longer valid. */
  closedSlow: number;
  closedKey: number;
  /** Streams that continued after changes that are no longer kept. */
  gaps: number;
  /** Rejected because a quota is exhausted. */
  rejected: number;
}

interface Open extends Listener {
  readonly connection: SseConnection;
  /** An event `gap` has reported that changes before this number may be missing. */
  gapTo: number;
  /** Since when the client has not read what was written; 0: it has. */
  stalledNs: number;
  /** Until when it waits for the number that it continues from; 0: it has that. */
  waitsUntilNs: number;
  /** When data was last written, and when the key was last checked. */
  wroteNs: number;
  checkedNs: number;
}

export function createStreams(deps: StreamsDeps): Streams {
  const { clock, receipts, flushEvents = (): void => {} } = deps;
  const { changes } = receipts;
  /** Distinguishes ids of this process from those of an earlier one that it did not replace. */
  const ownEpoch = Math.round(clock.unixMs()).toString(36);
  const epochNow = (): string => changes.epoch ?? ownEpoch;
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
    rejected: 0,
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

  /** The `gap` event, if changes were missed; the stream continues with what is kept. */
  function gapOf(stream: Open): string {
    if (stream.next >= changes.first && stream.next <= changes.next) return "";
    stream.next = stream.next > changes.next ? changes.next : changes.first;
    return gap(stream);
  }

  /** The event `gap`, which reports for all changes so far that some may be missing. */
  function gap(stream: Open): string {
    counters.gaps += 1;
    stream.gapTo = changes.next;
    return `event: gap\ndata: ${GAP}\n\n`;
  }

  function eventOf(number: number, receipt: object): string {
    return `id: ${epochNow()}-${number}\nevent: receipt\ndata: ${JSON.stringify(receipt)}\n\n`;
  }

  /** An id without data, which advances the client's Last-Event-ID. */
  function headOf(stream: Open): string {
    return `:\nid: ${epochNow()}-${stream.next - 1}\n\n`;
  }

  /** What the stream reads alone, in at most `stepsMax` steps. */
  function readAlone(stream: Open, stepsMax: number): string {
    const missed = gapOf(stream);
    const { account, next, states } = stream;
    let text = "";
    let hasEvicted = false;
    const take = (number: number, receipt: object): boolean => {
      counters.events += 1;
      text += eventOf(number, receipt);
      return text.length < RECEIPT_STREAM_CHARS_PER_ROUND;
    };
    const onEvicted = (): void => {
      hasEvicted = true;
    };
    const isTold = next < stream.gapTo;
    stream.next = receipts.readChanges(
      account,
      next,
      { states, stepsMax },
      take,
      isTold ? undefined : onEvicted,
    );
    return (hasEvicted ? gap(stream) : missed) + text;
  }

  function round(): void {
    flushEvents();
    const nowNs = clock.nowNs();
    closeStale(nowNs);
    for (const stream of streams) if (stream.waitsUntilNs !== 0) resume(stream, nowNs);
    counters.events += live.tell(takesIn);
    const behind = [...streams].filter((stream) => stream.text === "" && !live.isAtHead(stream));
    // The nearest first: round-robin, many far behind would each read less than arrives.
    behind.sort((a, b) => b.next - a.next);
    for (const stream of streams) if (takesIn(stream)) serve(stream, nowNs);
    let stepsLeft = RECEIPT_STREAM_ALONE_STEPS_MAX;
    for (const stream of behind) {
      if (stepsLeft === 0) break;
      if (!takesIn(stream) || !streams.has(stream)) continue;
      const from = stream.next;
      const stepsMax = Math.min(RECEIPT_STREAM_STEPS_PER_ROUND, stepsLeft);
      const text = readAlone(stream, stepsMax);
      // A stream of an account without receipts may check all of them in one step.
      stepsLeft -= Math.min(stepsMax, Math.max(1, stream.next - from));
      if (text !== "") write(stream, text, nowNs);
    }
  }

  /** Ends the wait of a stream, at the latest when its time is up. */
  function resume(stream: Open, nowNs: number): void {
    const last = stream.next - 1;
    if (!isAfterKnown(last) && nowNs < stream.waitsUntilNs) return;
    stream.waitsUntilNs = 0;
    stream.next = changes.after?.(last) ?? stream.next;
    live.add(stream);
  }

  function isAfterKnown(number: number): boolean {
    return changes.isAfterKnown?.(number) ?? true;
  }

  /** Closes streams that may not continue. */
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

  /** Writes the stream's text, or a heartbeat. */
  function serve(stream: Open, nowNs: number): void {
    const { text } = stream;
    stream.text = "";
    if (text !== "") write(stream, text, nowNs);
    else if (nowNs - stream.wroteNs >= HEARTBEAT_NS) {
      // An id without data advances the client's Last-Event-ID, so that it stays within what is
      // kept although the account has no events.
      write(stream, headOf(stream), nowNs);
    }
  }

  function abort(stream: Open): void {
    release(stream);
    stream.connection.abort();
  }

  /** The change after the one with that id. */
  function resumeAt(lastEventId: string): number {
    if (lastEventId === "") return changes.next;
    const [, of, number] = EVENT_ID.exec(lastEventId) ?? [];
    // An id of another process, or not an id of ours: all that is kept may have been missed.
    if (of !== epochNow()) return 0;
    return changes.after?.(Number(number)) ?? Number(number) + 1;
  }

  return {
    counters,
    open({ account, states, lastEventId }, connection, start) {
      const full = quota.acquire(account);
      if (full !== null) {
        counters.rejected += 1;
        return full;
      }
      const nowNs = clock.nowNs();
      const next = resumeAt(lastEventId);
      const waits = next > 0 && !isAfterKnown(next - 1);
      const stream: Open = {
        account,
        states,
        connection,
        gapTo: 0,
        next,
        text: "",
        stalledNs: 0,
        waitsUntilNs: waits ? nowNs + RECEIPT_STREAM_RESUME_MS_MAX * NS_PER_MS : 0,
        wroteNs: nowNs,
        checkedNs: nowNs,
      };
      if (!waits) live.add(stream);
      streams.add(stream);
      counters.open = streams.size;
      counters.opened += 1;
      timer ??= clock.every(ROUND_MS, round);
      start();
      write(stream, `retry: ${RETRY_MS}\n\n${waits ? "" : gapOf(stream)}`, nowNs);
      return {
        drained() {
          stream.stalledNs = 0;
        },
        left: () => void release(stream),
      };
    },
    drain() {
      for (const stream of streams) {
        if (takesIn(stream)) {
          const last = readAlone(stream, RECEIPT_STREAM_STEPS_PER_ROUND);
          write(stream, last + headOf(stream) + DRAINING, clock.nowNs());
        }
        // Without an id: the client resumes elsewhere where it would have here.
        else if (stream.stalledNs === 0) write(stream, DRAINING, clock.nowNs());
        release(stream);
        stream.connection.end();
      }
    },
  };
}

/** Whether the stream reads, and its connection accepts more data. */
function takesIn(stream: Open): boolean {
  return stream.stalledNs === 0 && stream.waitsUntilNs === 0;
}

/** Interval between two rounds of writing. */
const ROUND_MS = 20;
/** The HTTP library closes a connection idle for 8 s or more, many proxies after 30. */
const HEARTBEAT_NS = 5_000 * NS_PER_MS;
const CHECK_NS = 5_000 * NS_PER_MS;
/** When a client must reconnect after its stream ended. */
const RETRY_MS = 1_000;
const EVENT_ID = /^([0-9a-z]{1,12})-(\d{1,15})$/;
const GAP = JSON.stringify({
  message: "changes may have been missed that are no longer kept; /api/v1/transactions lists all",
});
const DRAINING = ": this edge is draining, reconnect to reach another edge\n\n";
