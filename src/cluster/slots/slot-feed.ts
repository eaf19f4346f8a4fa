/**
 * Slot events from every source that delivers, over one WebSocket and by asking.
 *
 * Both subscriptions are asked for, because many providers refuse slot updates, and some accept
 * them and never send anything. The slot is asked for as well: now and then while events come, so
 * that a feed that lies is found out, and often while they do not. A connection that is silent for
 * long is given up and opened anew, with back-off.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { type BackOff, type BackOffOptions, createBackOff } from "../back-off.ts";
import type { ChainCounters } from "../counters.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { ChainTarget, SlotEventKind } from "../target.ts";
import type { FeedName, FeedSocket } from "./subscription.ts";

export interface SlotFeedDeps {
  readonly clock: Clock;
  /** The clock of what is looked at now and then; `clock` where it is not given. */
  readonly rounds?: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "slot" | "slotTimeMs" | "openFeed">;
  readonly target: Pick<ChainTarget, "slotEvent" | "slotTimeHint">;
  readonly counters: ChainCounters;
  readonly backOff: BackOffOptions;
  /** A connection is there again; what answers may be another node than before. */
  readonly onBack?: () => void;
}

export interface SlotFeedOptions {
  /** Without an event for so long, the slot is asked for often; above the time of four slots. */
  readonly silenceMs: number;
  /** Without an event for so long, the connection is opened anew. */
  readonly reconnectMs: number;
  /** Time between two questions for the slot while no events come, and while they do. */
  readonly pollMs: number;
  readonly checkMs: number;
}

export interface SlotFeedStatus {
  /** The best source that delivers now; `none` when none does. */
  readonly source: FeedName | "polling" | "none";
  /** Whether the WebSocket is open. */
  readonly connected: boolean;
  /** Time since the last event of any source in milliseconds; null before the first. */
  readonly eventAgeMs: number | null;
}

export interface SlotFeed {
  start(): void;
  stop(): void;
  status(): SlotFeedStatus;
}

export function createSlotFeed(deps: SlotFeedDeps, options: SlotFeedOptions): SlotFeed {
  return new Feed(deps, options);
}

type PlainSource = FeedName | "polling";
const BEST_FIRST: readonly PlainSource[] = ["slotsUpdates", "slot", "polling"];
/** How many feeds a connection is asked for. */
const FEEDS_ASKED = 2;

/** Why no slots come. */
const ENDED = "the connection of cluster.ws_url ended";
const UNREACHABLE = "cluster.ws_url could not be connected to, or is no WebSocket";
const REFUSED = "the node refuses both subscriptions to slots";
const SILENT = "the node takes the connection and says nothing";

/** A connection, and what it refuses. */
interface Session {
  readonly socket: FeedSocket;
  readonly refused: Set<FeedName>;
  open: boolean;
  /** When it last gave a sign of life: opened, or an event. */
  aliveNs: number;
}

class Feed implements SlotFeed {
  readonly #deps: SlotFeedDeps;
  readonly #options: SlotFeedOptions;
  readonly #reconnects: BackOff;
  readonly #pollWaits: BackOff;
  readonly #toldRefusals = new Set<FeedName>();
  /** Whether the log has it that no events come over the WebSocket, since the last one. */
  #toldLoss = false;
  #running = false;
  #session: Session | null = null;
  #timers: Timer[] = [];
  #pollTimer: Timer | null = null;
  #polling = false;
  #pollInHand = false;
  /** When each source last said something. */
  readonly #eventNs = new Map<PlainSource, number>();
  /** When an event last came over the WebSocket. */
  #feedNs: number;

  constructor(deps: SlotFeedDeps, options: SlotFeedOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#reconnects = createBackOff(deps.backOff);
    this.#pollWaits = createBackOff({ ...deps.backOff, firstMs: options.pollMs });
    this.#feedNs = deps.clock.nowNs();
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    const { clock } = this.#deps;
    this.#feedNs = clock.nowNs();
    const { rounds = clock } = this.#deps;
    this.#timers = [rounds.every(this.#options.silenceMs / 4, () => this.#watch())];
    // The first slot is asked for at once; a connection takes longer to say something.
    this.#poll();
    this.#connect();
    void this.#askSlotTime();
  }

  stop(): void {
    this.#running = false;
    for (const timer of this.#timers) timer.cancel();
    this.#timers = [];
    this.#pollTimer?.cancel();
    this.#pollTimer = null;
    this.#polling = false;
    this.#session?.socket.end();
    this.#session = null;
  }

  status(): SlotFeedStatus {
    const { clock } = this.#deps;
    const nowNs = clock.nowNs();
    let eventAgeMs: number | null = null;
    let best: PlainSource | null = null;
    for (const source of BEST_FIRST) {
      const thenNs = this.#eventNs.get(source);
      if (thenNs === undefined) continue;
      const ageMs = this.#since(thenNs, nowNs);
      eventAgeMs = Math.min(ageMs, eventAgeMs ?? ageMs);
      if (ageMs <= this.#options.silenceMs) best ??= source;
    }
    const connected = this.#session?.open ?? false;
    return { source: best ?? "none", connected, eventAgeMs };
  }

  #connect(): void {
    const { clock, rpc } = this.#deps;
    const session: Session = {
      socket: rpc.openFeed({
        opened: () => this.#opened(session),
        event: (feed, kind, slot) => this.#event(session, feed, kind, slot),
        closed: () => this.#closed(session),
      }),
      refused: new Set(),
      open: false,
      aliveNs: clock.nowNs(),
    };
    this.#session = session;
  }

  #opened(session: Session): void {
    if (session !== this.#session) return;
    const { clock, counters, onBack } = this.#deps;
    counters.socketsOpened += 1;
    session.open = true;
    session.aliveNs = clock.nowNs();
    if (counters.socketsOpened > 1) onBack?.();
    this.#ask(session, "slotsUpdates");
    this.#ask(session, "slot");
  }

  #closed(session: Session, reason = session.open ? ENDED : UNREACHABLE): void {
    if (session !== this.#session) return;
    this.#session = null;
    const { clock, counters } = this.#deps;
    counters.socketsClosed += 1;
    this.#tellLoss(reason);
    if (this.#running) this.#reconnectLater(clock);
  }

  /** Says once what may come with every connection, until events come again. */
  #tellLoss(reason: string): void {
    if (this.#toldLoss) return;
    this.#toldLoss = true;
    this.#deps.log.warn({ reason }, "no slots over the WebSocket: the node is asked instead");
  }

  #reconnectLater(clock: Clock): void {
    const timer = clock.after(this.#reconnects.next(), () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
      if (this.#running && this.#session === null) this.#connect();
    });
    this.#timers.push(timer);
  }

  #ask(session: Session, feed: FeedName): void {
    void session.socket.subscribe(feed).then((accepted) => {
      if (accepted || session !== this.#session) return;
      this.#deps.counters.subscriptionsRefused += 1;
      this.#tellRefusal(feed);
      session.refused.add(feed);
      if (session.refused.size === FEEDS_ASKED) this.#startPolling();
    });
  }

  /** Says once what is asked again with every connection. */
  #tellRefusal(feed: FeedName): void {
    if (this.#toldRefusals.has(feed)) return;
    this.#toldRefusals.add(feed);
    this.#deps.log.info({ feed }, "the node refuses a subscription");
  }

  #event(session: Session, feed: FeedName, kind: SlotEventKind, slot: number): void {
    if (session !== this.#session) return;
    const nowNs = this.#deps.clock.nowNs();
    session.aliveNs = nowNs;
    this.#feedNs = nowNs;
    this.#reconnects.reset();
    this.#toldLoss = false;
    this.#deps.counters.slotEvents += 1;
    this.#polling = false;
    this.#took(feed, kind, slot, nowNs);
  }

  #took(source: PlainSource, kind: SlotEventKind, slot: number, nowNs: number): void {
    this.#eventNs.set(source, nowNs);
    this.#deps.target.slotEvent(kind, slot, source);
  }

  /** Asks often while nothing arrives, and gives up a connection that stays silent. */
  #watch(): void {
    const { silenceMs, reconnectMs } = this.#options;
    const nowNs = this.#deps.clock.nowNs();
    if (this.#since(this.#feedNs, nowNs) > silenceMs) this.#startPolling();
    const session = this.#session;
    if (session === null) return;
    // A node that refuses both has nothing to say: it is asked again just as rarely.
    if (this.#since(session.aliveNs, nowNs) <= reconnectMs) return;
    this.#deps.counters.socketsSilent += 1;
    session.socket.end();
    const isRefused = session.refused.size === FEEDS_ASKED;
    this.#closed(session, !session.open ? UNREACHABLE : isRefused ? REFUSED : SILENT);
  }

  #startPolling(): void {
    if (this.#polling || !this.#running) return;
    this.#polling = true;
    this.#poll();
  }

  #poll(): void {
    if (this.#pollInHand) return;
    this.#pollInHand = true;
    this.#pollTimer?.cancel();
    void this.#pollOnce().then((waitMs) => {
      this.#pollInHand = false;
      if (!this.#running) return;
      const { clock, rounds = clock } = this.#deps;
      const { pollMs, checkMs } = this.#options;
      const isCheck = waitMs === null && !this.#polling;
      this.#pollTimer = isCheck
        ? rounds.after(checkMs, () => this.#poll())
        : clock.after(waitMs ?? pollMs, () => this.#poll());
    });
  }

  /** Once: before long the slot time is measured here. */
  async #askSlotTime(): Promise<void> {
    const { rpc, target, log } = this.#deps;
    try {
      const slotTimeMs = await rpc.slotTimeMs();
      if (slotTimeMs === null || !this.#running) return;
      target.slotTimeHint?.(slotTimeMs);
      log.info({ slotTimeMs: Math.round(slotTimeMs) }, "the slot time, as the node measured it");
    } catch {
      // Not every node tells it, and the clock is careful until it knows.
    }
  }

  /** Asks once; answers how long to wait, or null for as long as usual. */
  async #pollOnce(): Promise<number | null> {
    const { clock, rpc, counters } = this.#deps;
    try {
      const slot = await rpc.slot();
      if (!this.#running) return null;
      counters.slotPolls += 1;
      this.#pollWaits.reset();
      this.#took("polling", "polled", slot, clock.nowNs());
      return null;
    } catch {
      // Counted, and seen in the age of the last event; the next poll comes later.
      if (this.#running) counters.slotPollFailures += 1;
      return this.#pollWaits.next();
    }
  }

  #since(thenNs: number, nowNs: number): number {
    return (nowNs - thenNs) / NS_PER_MS;
  }
}
