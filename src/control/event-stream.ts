/**
 * Live numbers while a page is open, as server-sent events.
 *
 * All streams of an account share one look at the store, every two seconds; who listens gets the
 * overview at once and whenever it changed. While looks fail, or one takes longer than two periods,
 * an event `stale` says since when there are no newer figures; the next overview ends that.
 *
 * A stream ends with its session or token, which it does not keep alive: a page that is left open
 * must not put off the idle end. A reader that does not read is cut off rather than waited for.
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

export interface EventStreams {
  readonly counters: { opened: number; refused: number; cutOff: number };
  /** Streams that are open now. */
  count(): number;
  /** @throws ApiError when there are too many */
  open(caller: Caller): Readable;
  /** Ends every stream. */
  stop(): void;
}

interface Deps {
  readonly store: Pick<Store, "usage" | "sessions" | "apiTokens">;
  readonly clock: Clock;
  readonly log: Log;
}

/** One account's streams and what they were sent last. */
interface Subscribers {
  readonly listeners: Map<Readable, Caller>;
  readonly timer: Timer;
  /** The last overview, as an event. */
  usage: string | null;
  /** When that was known to be current. */
  currentAtMs: number | null;
  /** The event that says so, while the overview is not current. */
  stale: string | null;
  silentMs: number;
  looking: boolean;
  /** Periods that began while one look went on. */
  late: number;
}

export function createEventStreams(deps: Deps): EventStreams {
  return new EventStreamHub(deps);
}

class EventStreamHub implements EventStreams {
  readonly counters = { opened: 0, refused: 0, cutOff: 0 };
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

  count(): number {
    return this.#count;
  }

  open(caller: Caller): Readable {
    const accountId = caller.account.id;
    const mine = this.#audiences.get(accountId)?.listeners.size ?? 0;
    if (mine >= EVENT_STREAMS_PER_ACCOUNT_MAX || this.#count >= EVENT_STREAMS_MAX) {
      this.counters.refused += 1;
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

  /** Never rejects; a look that takes longer than the period is not joined by another. */
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
      // The page keeps what it has; the next look may succeed.
      this.#log.warn({ err: error }, "a live stream has no newer figures");
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

  /** Null: nothing changed; a comment ends a long silence. */
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

  /** Its reader may take long to read the end: nothing is told to the stream from here on. */
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

/** A look that goes on when this many further periods have begun leaves the figures stale. */
const LATE_MAX = 2;
/** Above this many bytes unread, a reader is taken for gone. */
const UNREAD_BYTES_MAX = 256 * 1024;
