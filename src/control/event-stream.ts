/**
 * Live usage while a page is open, as server-sent events.
 *
 * All streams of an account share one query of the store, every two seconds. A stream receives the
 * overview immediately and after each change. While queries fail, or one takes longer than two
 * periods, a `stale` event gives the time since which there are no newer numbers; the next overview
 * ends that state.
 *
 * A stream ends with its session or token and does not keep it alive: a page that is left open must
 * not delay the idle timeout. The server disconnects a client that does not read.
 */

import { Readable } from "node:stream";
import type { Clock, Timer } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { overviewOf } from "./api/stats.ts";
import { ApiError } from "./api-error.ts";
import {
  EVENT_STREAM_PERIOD_MS,
  EVENT_STREAM_SILENCE_MS_MAX,
  EVENT_STREAMS_MAX,
  EVENT_STREAMS_PER_ACCOUNT_MAX,
} from "./limits.ts";
import type { Store } from "./store/contract.ts";
import type { Caller } from "./web/route.ts";
import { iso } from "./web/schema.ts";

interface Deps {
  readonly store: Pick<Store, "usage" | "sessions" | "apiTokens">;
  readonly clock: Clock;
  readonly log: Log;
}

/** The streams of one account and the last event that they were sent. */
interface Subscribers {
  readonly listeners: Map<Readable, Caller>;
  readonly timer: Timer;
  /** The last overview, as an event. */
  usage: string | null;
  /** When the overview was last known to be current. */
  currentAtMs: number | null;
  /** The `stale` event, while the overview is not current. */
  stale: string | null;
  silentMs: number;
  looking: boolean;
  /** Periods that started while one query was running. */
  late: number;
}

export function createEventStreams(deps: Deps): EventStreams {
  return new EventStreams(deps);
}

export class EventStreams {
  readonly counters = { opened: 0, rejected: 0, cutOff: 0 };
  readonly #store: Deps["store"];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #audiences = new Map<string, Subscribers>();
  #count = 0;

  constructor({ store, clock, log }: Deps) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Open streams. */
  count(): number {
    return this.#count;
  }

  /** @throws ApiError when there are too many streams */
  open(caller: Caller): Readable {
    const accountId = caller.account.id;
    const mine = this.#audiences.get(accountId)?.listeners.size ?? 0;
    if (mine >= EVENT_STREAMS_PER_ACCOUNT_MAX || this.#count >= EVENT_STREAMS_MAX) {
      this.counters.rejected += 1;
      const seconds = EVENT_STREAM_PERIOD_MS / 1000;
      throw new ApiError("rate_limited", "too many live streams are open", {
        retry_after_seconds: seconds,
      });
    }
    const subscribers = this.#audiences.get(accountId) ?? this.#newAudience(accountId);
    const stream = new Readable({ read() {} });
    subscribers.listeners.set(stream, caller);
    this.#count += 1;
    this.counters.opened += 1;
    stream.once("close", () => this.#leave(accountId, subscribers, stream));
    stream.push(": live\n\n");
    if (subscribers.usage !== null) stream.push(subscribers.usage);
    if (subscribers.stale !== null) stream.push(subscribers.stale);
    if (subscribers.usage === null) void this.#look(accountId, subscribers);
    return stream;
  }

  stop(): void {
    for (const [accountId, subscribers] of [...this.#audiences]) {
      for (const stream of [...subscribers.listeners.keys()]) {
        this.#end(accountId, subscribers, stream, "stopping");
      }
    }
  }

  #newAudience(accountId: string): Subscribers {
    const subscribers: Subscribers = {
      listeners: new Map(),
      timer: this.#clock.every(
        EVENT_STREAM_PERIOD_MS,
        () => void this.#look(accountId, subscribers),
      ),
      usage: null,
      currentAtMs: null,
      stale: null,
      silentMs: 0,
      looking: false,
      late: 0,
    };
    this.#audiences.set(accountId, subscribers);
    return subscribers;
  }

  #leave(accountId: string, subscribers: Subscribers, stream: Readable): void {
    if (!subscribers.listeners.delete(stream)) return;
    this.#count -= 1;
    if (subscribers.listeners.size > 0) return;
    subscribers.timer.cancel();
    this.#audiences.delete(accountId);
  }

  /** Never rejects. While a query is running, no second one starts. */
  async #look(accountId: string, subscribers: Subscribers): Promise<void> {
    if (subscribers.looking) {
      subscribers.late += 1;
      if (subscribers.late >= LATE_MAX) this.#tellStale(subscribers);
      return;
    }
    subscribers.looking = true;
    try {
      await this.#endTheEnded(accountId, subscribers);
      const query = { span: "hour", region: null, keyId: null } as const;
      const overview = overviewOf(await this.#store.usage.overview(accountId, query));
      this.#tellUsage(subscribers, `event: usage\ndata: ${JSON.stringify(overview)}\n\n`);
    } catch (error) {
      // The page keeps its numbers; the next query may succeed.
      this.#log.warn({ err: error }, "an event stream has no newer numbers");
      this.#tellStale(subscribers);
    } finally {
      subscribers.looking = false;
      subscribers.late = 0;
    }
  }

  #tellUsage(subscribers: Subscribers, usage: string): void {
    const changed = usage !== subscribers.usage || subscribers.stale !== null;
    subscribers.usage = usage;
    subscribers.stale = null;
    subscribers.currentAtMs = this.#clock.unixMs();
    this.#tell(subscribers, changed ? usage : null);
  }

  #tellStale(subscribers: Subscribers): void {
    const { currentAtMs } = subscribers;
    const since = currentAtMs === null ? null : iso(currentAtMs);
    const stale = `event: stale\ndata: ${JSON.stringify({ since })}\n\n`;
    const changed = stale !== subscribers.stale;
    subscribers.stale = stale;
    this.#tell(subscribers, changed ? stale : null);
  }

  /** Null: nothing changed; sends a comment after a long silence. */
  #tell(subscribers: Subscribers, change: string | null): void {
    subscribers.silentMs = change === null ? subscribers.silentMs + EVENT_STREAM_PERIOD_MS : 0;
    const due = subscribers.silentMs >= EVENT_STREAM_SILENCE_MS_MAX;
    if (due) subscribers.silentMs = 0;
    const text = change ?? (due ? ": still here\n\n" : null);
    if (text === null) return;
    for (const stream of [...subscribers.listeners.keys()]) {
      if (stream.readableLength > UNREAD_BYTES_MAX) {
        this.counters.cutOff += 1;
        stream.destroy();
      } else {
        stream.push(text);
      }
    }
  }

  async #endTheEnded(accountId: string, subscribers: Subscribers): Promise<void> {
    const callers = [...subscribers.listeners.values()];
    const sessions = callers.some(({ session }) => session !== null)
      ? new Set((await this.#store.sessions.list(accountId)).map(({ id }) => id))
      : new Set<string>();
    const tokens = callers.some(({ token }) => token !== null)
      ? new Set((await this.#store.apiTokens.list(accountId)).map(({ id }) => id))
      : new Set<string>();
    for (const [stream, { session, token }] of [...subscribers.listeners]) {
      const alive =
        (session !== null && sessions.has(session.id)) || (token !== null && tokens.has(token.id));
      if (!alive) this.#end(accountId, subscribers, stream, "ended");
    }
  }

  /** The client may take long to read the end; nothing is sent to the stream from here on. */
  #end(
    accountId: string,
    subscribers: Subscribers,
    stream: Readable,
    event: "ended" | "stopping",
  ): void {
    this.#leave(accountId, subscribers, stream);
    stream.push(`event: ${event}\ndata: {}\n\n`);
    stream.push(null);
  }
}

/** When this many further periods have started during one query, the numbers are stale. */
const LATE_MAX = 2;
/** A client with more unread bytes than this is disconnected. */
const UNREAD_BYTES_MAX = 256 * 1024;
