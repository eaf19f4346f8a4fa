/**
 * Slot events from every available source, over one WebSocket and by polling.
 *
 * Both subscriptions are requested, because many providers reject slot updates, and some accept
 * them and never send any. The slot is also polled: rarely while events arrive, to detect a false
 * source, and often while they do not. It is polled soon when a source goes back, because the
 * router waits for what the other sources say to that. A connection that is silent for long is
 * closed and reopened with back-off.
 */

import { type Clock, NS_PER_MS, type Timer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { type BackOff, type BackOffOptions, createBackOff } from "../back-off.ts";
import type { ClusterCounters } from "../counters.ts";
import { SLOT_BACK_DISTANCE } from "../limits.ts";
import type { ClusterSink, SlotEventKind, SlotSource } from "../ports.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { SlotSubscriber, SlotSubscription } from "./subscription.ts";

export interface SlotWatcherDeps {
  readonly clock: Clock;
  /** The clock for rare checks. */
  readonly coalescedClock: Clock;
  readonly log: Log;
  readonly rpc: Pick<Rpc, "slot" | "slotTimeMs" | "openSlotSubscriber">;
  readonly sink: Pick<ClusterSink, "slotEvent" | "slotTimeHint">;
  readonly counters: ClusterCounters;
  readonly backOff: BackOffOptions;
  /** The connection was reopened; it may lead to another node than before. */
  readonly onBack: () => void;
}

export interface SlotWatcherOptions {
  /** After this long without an event, the slot is polled often; more than four slots. */
  readonly silenceMs: number;
  /** After this long without an event, the connection is reopened. */
  readonly reconnectMs: number;
  /** Time between two slot polls, without and with events. */
  readonly pollMs: number;
  readonly checkMs: number;
}

export function createSlotWatcher(deps: SlotWatcherDeps, options: SlotWatcherOptions): SlotWatcher {
  return new SlotWatcher(deps, options);
}

/** Subscriptions requested per connection. */
const SUBSCRIPTION_COUNT = 2;

/** Reasons for missing slots. */
const ENDED = "the connection of cluster.ws_url ended";
const UNREACHABLE = "cluster.ws_url could not be connected to, or is no WebSocket";
const REFUSED = "the node refuses both subscriptions to slots";
const SILENT = "the node takes the connection and says nothing";

/** A connection and the subscriptions it rejected. */
interface Session {
  readonly socket: SlotSubscriber;
  readonly refused: Set<SlotSubscription>;
  open: boolean;
  /** When it was opened or last delivered an event. */
  aliveNs: number;
}

export class SlotWatcher {
  readonly #deps: SlotWatcherDeps;
  readonly #options: SlotWatcherOptions;
  readonly #reconnects: BackOff;
  readonly #pollWaits: BackOff;
  readonly #reportedRefusals = new Set<SlotSubscription>();
  /** Whether missing WebSocket events were logged since the last one. */
  #lossReported = false;
  #running = false;
  #session: Session | null = null;
  #timers: Timer[] = [];
  #pollTimer: Timer | null = null;
  #polling = false;
  #pollPending = false;
  /** The highest slot of each source since it last went back. */
  readonly #highestSlots = new Map<SlotSource, number>();
  /** When the last poll began. */
  #polledNs = Number.NEGATIVE_INFINITY;
  /** When an event last came over the WebSocket. */
  #subscriptionNs: number;

  constructor(deps: SlotWatcherDeps, options: SlotWatcherOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#reconnects = createBackOff(deps.backOff);
    this.#pollWaits = createBackOff({ ...deps.backOff, firstMs: options.pollMs });
    this.#subscriptionNs = deps.clock.nowNs();
  }

  start(): void {
    if (this.#running) return;
    this.#running = true;
    const { clock, coalescedClock } = this.#deps;
    this.#subscriptionNs = clock.nowNs();
    this.#timers = [coalescedClock.every(this.#options.silenceMs / 4, () => this.#check())];
    // Polls the first slot immediately; a connection takes longer to deliver one.
    this.#poll();
    this.#connect();
    void this.#fetchSlotTime();
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

  /** Any source but the polls reports a slot. */
  observe(slot: number, source: SlotSource): void {
    const highest = this.#highestSlots.get(source) ?? -1;
    if (!Number.isSafeInteger(slot) || source === "polling") return;
    const isBack = slot < highest - SLOT_BACK_DISTANCE;
    if (isBack || slot > highest) this.#highestSlots.set(source, slot);
    if (!isBack || !this.#running) return;
    // A feed that goes back again and again is not polled more often than a silent one.
    const { clock } = this.#deps;
    const waitMs = this.#options.pollMs - this.#since(this.#polledNs, clock.nowNs());
    if (waitMs <= 0) this.#poll();
    else if (!this.#pollPending) this.#pollAfter(clock, waitMs);
  }

  #connect(): void {
    const { clock, rpc } = this.#deps;
    const session: Session = {
      socket: rpc.openSlotSubscriber({
        opened: () => this.#opened(session),
        event: (subscription, kind, slot) => this.#event(session, subscription, kind, slot),
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
    if (counters.socketsOpened > 1) onBack();
    this.#subscribe(session, "slotsUpdates");
    this.#subscribe(session, "slot");
  }

  #closed(session: Session, reason = session.open ? ENDED : UNREACHABLE): void {
    if (session !== this.#session) return;
    this.#session = null;
    const { clock, counters } = this.#deps;
    counters.socketsClosed += 1;
    this.#reportLoss(reason);
    if (this.#running) this.#reconnectLater(clock);
  }

  /** Logs once until events arrive again, although every connection may repeat it. */
  #reportLoss(reason: string): void {
    if (this.#lossReported) return;
    this.#lossReported = true;
    this.#deps.log.warn({ reason }, "no slots over the WebSocket: the node is asked instead");
  }

  #reconnectLater(clock: Clock): void {
    const timer = clock.after(this.#reconnects.next(), () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
      if (this.#running && this.#session === null) this.#connect();
    });
    this.#timers.push(timer);
  }

  #subscribe(session: Session, subscription: SlotSubscription): void {
    void session.socket.subscribe(subscription).then((accepted) => {
      if (accepted || session !== this.#session) return;
      this.#deps.counters.subscriptionsRefused += 1;
      this.#reportRefusal(subscription);
      session.refused.add(subscription);
      if (session.refused.size === SUBSCRIPTION_COUNT) this.#startPolling();
    });
  }

  /** Logs once, although every connection asks again. */
  #reportRefusal(subscription: SlotSubscription): void {
    if (this.#reportedRefusals.has(subscription)) return;
    this.#reportedRefusals.add(subscription);
    this.#deps.log.info({ feed: subscription }, "the node refuses a subscription");
  }

  #event(
    session: Session,
    subscription: SlotSubscription,
    kind: SlotEventKind,
    slot: number,
  ): void {
    if (session !== this.#session) return;
    const nowNs = this.#deps.clock.nowNs();
    session.aliveNs = nowNs;
    this.#subscriptionNs = nowNs;
    this.#reconnects.reset();
    this.#lossReported = false;
    this.#deps.counters.slotEvents += 1;
    this.#polling = false;
    this.#deps.sink.slotEvent(kind, slot, subscription);
  }

  /** Polls often while nothing arrives, and closes a connection that stays silent. */
  #check(): void {
    const { silenceMs, reconnectMs } = this.#options;
    const nowNs = this.#deps.clock.nowNs();
    if (this.#since(this.#subscriptionNs, nowNs) > silenceMs) this.#startPolling();
    const session = this.#session;
    if (session === null) return;
    // A node that rejects both has nothing to send: it is asked again at the same interval.
    if (this.#since(session.aliveNs, nowNs) <= reconnectMs) return;
    this.#deps.counters.socketsSilent += 1;
    session.socket.end();
    const isRefused = session.refused.size === SUBSCRIPTION_COUNT;
    this.#closed(session, !session.open ? UNREACHABLE : isRefused ? REFUSED : SILENT);
  }

  #startPolling(): void {
    if (this.#polling || !this.#running) return;
    this.#polling = true;
    this.#poll();
  }

  #poll(): void {
    if (this.#pollPending) return;
    this.#pollPending = true;
    this.#polledNs = this.#deps.clock.nowNs();
    this.#pollTimer?.cancel();
    void this.#pollOnce().then((waitMs) => {
      this.#pollPending = false;
      if (!this.#running) return;
      const { clock, coalescedClock } = this.#deps;
      const { pollMs, checkMs } = this.#options;
      const isCheck = waitMs === null && !this.#polling;
      if (isCheck) this.#pollAfter(coalescedClock, checkMs);
      else this.#pollAfter(clock, waitMs ?? pollMs);
    });
  }

  #pollAfter(clock: Clock, waitMs: number): void {
    this.#pollTimer?.cancel();
    this.#pollTimer = clock.after(waitMs, () => this.#poll());
  }

  /** Called once: the slot time is soon measured locally. */
  async #fetchSlotTime(): Promise<void> {
    const { rpc, sink, log } = this.#deps;
    try {
      const slotTimeMs = await rpc.slotTimeMs();
      if (slotTimeMs === null || !this.#running) return;
      sink.slotTimeHint(slotTimeMs);
      log.info({ slotTimeMs: Math.round(slotTimeMs) }, "the slot time, as the node measured it");
    } catch {
      // Not every node reports it; the slot clock is conservative until it knows.
    }
  }

  /** Polls once; returns the time to wait, or null for the usual time. */
  async #pollOnce(): Promise<number | null> {
    const { rpc, sink, counters } = this.#deps;
    try {
      const slot = await rpc.slot();
      if (!this.#running) return null;
      counters.slotPolls += 1;
      this.#pollWaits.reset();
      sink.slotEvent("polled", slot, "polling");
      return null;
    } catch {
      // Counted; the next poll backs off.
      if (this.#running) counters.slotPollFailures += 1;
      return this.#pollWaits.next();
    }
  }

  #since(thenNs: number, nowNs: number): number {
    return (nowNs - thenNs) / NS_PER_MS;
  }
}
