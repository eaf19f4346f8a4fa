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
import { overviewOf } from "./api/figures.ts";
import { Fault } from "./fault.ts";
import {
  LIVE_PERIOD_MS,
  LIVE_SILENCE_MS_MAX,
  LIVE_STREAMS_MAX,
  LIVE_STREAMS_PER_ACCOUNT_MAX,
} from "./limits.ts";
import type { Store } from "./store/contract.ts";
import type { Caller } from "./web/route.ts";
import { iso } from "./web/schema.ts";

export interface Live {
  readonly counters: { opened: number; refused: number; cutOff: number };
  /** Streams that are open now. */
  count(): number;
  /** @throws Fault when there are too many */
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
interface Audience {
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

export function createLive(deps: Deps): Live {
  return new LiveStreams(deps);
}

class LiveStreams implements Live {
  readonly counters = { opened: 0, refused: 0, cutOff: 0 };
  readonly #store: Deps["store"];
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #audiences = new Map<string, Audience>();
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
    if (mine >= LIVE_STREAMS_PER_ACCOUNT_MAX || this.#count >= LIVE_STREAMS_MAX) {
      this.counters.refused += 1;
      const seconds = LIVE_PERIOD_MS / 1000;
      throw new Fault("rate_limited", "too many live streams are open", {
        retry_after_seconds: seconds,
      });
    }
    const audience = this.#audiences.get(accountId) ?? this.#newAudience(accountId);
    const stream = new Readable({ read() {} });
    audience.listeners.set(stream, caller);
    this.#count += 1;
    this.counters.opened += 1;
    stream.once("close", () => this.#leave(accountId, audience, stream));
    stream.push(": live\n\n");
    if (audience.usage !== null) stream.push(audience.usage);
    if (audience.stale !== null) stream.push(audience.stale);
    if (audience.usage === null) void this.#look(accountId, audience);
    return stream;
  }

  stop(): void {
    for (const [accountId, audience] of [...this.#audiences]) {
      for (const stream of [...audience.listeners.keys()]) {
        this.#end(accountId, audience, stream, "stopping");
      }
    }
  }

  #newAudience(accountId: string): Audience {
    const audience: Audience = {
      listeners: new Map(),
      timer: this.#clock.every(LIVE_PERIOD_MS, () => void this.#look(accountId, audience)),
      usage: null,
      currentAtMs: null,
      stale: null,
      silentMs: 0,
      looking: false,
      late: 0,
    };
    this.#audiences.set(accountId, audience);
    return audience;
  }

  #leave(accountId: string, audience: Audience, stream: Readable): void {
    if (!audience.listeners.delete(stream)) return;
    this.#count -= 1;
    if (audience.listeners.size > 0) return;
    audience.timer.cancel();
    this.#audiences.delete(accountId);
  }

  /** Never rejects; a look that takes longer than the period is not joined by another. */
  async #look(accountId: string, audience: Audience): Promise<void> {
    if (audience.looking) {
      audience.late += 1;
      if (audience.late >= LATE_MAX) this.#tellStale(audience);
      return;
    }
    audience.looking = true;
    try {
      await this.#endTheEnded(accountId, audience);
      const query = { span: "hour", region: null, keyId: null } as const;
      const overview = overviewOf(await this.#store.usage.overview(accountId, query));
      this.#tellUsage(audience, `event: usage\ndata: ${JSON.stringify(overview)}\n\n`);
    } catch (error) {
      // The page keeps what it has; the next look may succeed.
      this.#log.warn({ err: error }, "a live stream has no newer figures");
      this.#tellStale(audience);
    } finally {
      audience.looking = false;
      audience.late = 0;
    }
  }

  #tellUsage(audience: Audience, usage: string): void {
    const changed = usage !== audience.usage || audience.stale !== null;
    audience.usage = usage;
    audience.stale = null;
    audience.currentAtMs = this.#clock.unixMs();
    this.#tell(audience, changed ? usage : null);
  }

  #tellStale(audience: Audience): void {
    const { currentAtMs } = audience;
    const since = currentAtMs === null ? null : iso(currentAtMs);
    const stale = `event: stale\ndata: ${JSON.stringify({ since })}\n\n`;
    const changed = stale !== audience.stale;
    audience.stale = stale;
    this.#tell(audience, changed ? stale : null);
  }

  /** Null: nothing changed; a comment ends a long silence. */
  #tell(audience: Audience, change: string | null): void {
    audience.silentMs = change === null ? audience.silentMs + LIVE_PERIOD_MS : 0;
    const due = audience.silentMs >= LIVE_SILENCE_MS_MAX;
    if (due) audience.silentMs = 0;
    const text = change ?? (due ? ": still here\n\n" : null);
    if (text === null) return;
    for (const stream of [...audience.listeners.keys()]) {
      if (stream.readableLength > UNREAD_BYTES_MAX) {
        this.counters.cutOff += 1;
        stream.destroy();
      } else {
        stream.push(text);
      }
    }
  }

  async #endTheEnded(accountId: string, audience: Audience): Promise<void> {
    const callers = [...audience.listeners.values()];
    const sessions = callers.some(({ session }) => session !== null)
      ? new Set((await this.#store.sessions.list(accountId)).map(({ id }) => id))
      : new Set<string>();
    const tokens = callers.some(({ token }) => token !== null)
      ? new Set((await this.#store.apiTokens.list(accountId)).map(({ id }) => id))
      : new Set<string>();
    for (const [stream, { session, token }] of [...audience.listeners]) {
      const alive =
        (session !== null && sessions.has(session.id)) || (token !== null && tokens.has(token.id));
      if (!alive) this.#end(accountId, audience, stream, "ended");
    }
  }

  /** Its reader may take long to read the end: nothing is told to the stream from here on. */
  #end(accountId: string, audience: Audience, stream: Readable, event: "ended" | "stopping"): void {
    this.#leave(accountId, audience, stream);
    stream.push(`event: ${event}\ndata: {}\n\n`);
    stream.push(null);
  }
}

/** A look that goes on when this many further periods have begun leaves the figures stale. */
const LATE_MAX = 2;
/** Above this many bytes unread, a reader is taken for gone. */
const UNREAD_BYTES_MAX = 256 * 1024;
