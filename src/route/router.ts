/**
 * Maintains the plan: which leaders to send to and to keep warm now.
 *
 * The plan is recomputed when the slot, the schedule or the contacts change, never per transaction;
 * the hot path reads the field `plan`. A timer runs until the next slot is due, so that slots
 * without an event pass as well, or until the next leader is due within the slot. `plan` is null
 * while the slot is unknown: at the start and after too long a silence.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import type { Plan } from "../core/flow.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import { type Contact, type Contacts, createContacts } from "./contacts.ts";
import { RouteCounters } from "./counters.ts";
import { SLOT_BACK_LIKELY_MS } from "./limits.ts";
import { type LeaderTimes, makePlan, samePlan } from "./planner.ts";
import { createSchedule, type EpochLeaders, type Schedule } from "./schedule.ts";
import type { SlotEventKind } from "./slot-time.ts";
import {
  createSlotClock,
  type SlotClock,
  type SlotSource,
  type SlotSourceStatus,
} from "./slots.ts";

export interface RouterDeps {
  readonly clock: Clock;
  /** Called with each new plan, and with null when it ends. Must not throw. */
  readonly onPlan: (plan: Plan | null) => void;
  /** Called before the first plan after the slot went back. Must not throw. */
  readonly onSlotBack?: () => void;
  /** Measured leader times. */
  readonly times?: LeaderTimes;
}

export interface RouterOptions {
  /** `[send] leaders`: how many leaders a transaction is fanned out to. */
  readonly leaders: number;
  /** How many leaders' connections are held open, counted from the current one. */
  readonly warmWindows: number;
  /** `[send] deny`: identities of leaders to skip. */
  readonly deny?: readonly string[];
  /** The node behind each slot source; a source not named is its own node. */
  readonly slotOrigins?: Readonly<Partial<Record<SlotSource, string>>>;
}

export interface RouterStatus {
  /** The current slot; null if unknown. */
  readonly slot: number | null;
  readonly slotTimeMs: number;
  /** Time since the last slot event in milliseconds; null before the first. */
  readonly slotAgeMs: number | null;
  /** Whether the leader of the current slot is known. */
  readonly scheduleCovers: boolean;
  /** Epochs with a known schedule. */
  readonly epochs: readonly number[];
  /** Leaders with an address. */
  readonly contacts: number;
  /** Leaders skipped as delinquent. */
  readonly delinquent: number;
  /** Leaders that a transaction would be sent to now. */
  readonly targets: number;
}

export interface Router {
  /** A source reports that a slot started, ended, or was polled. */
  slotEvent(kind: SlotEventKind, slot: number, source?: SlotSource): void;
  /** The slot time in milliseconds, as a node measured it before this process began. */
  slotTimeHint(slotTimeMs: number): void;
  /** The cluster confirms nothing while slots pass, so its slot may go back soon; or no longer. */
  setConfirmationStalled(isStalled: boolean): void;
  /**
   * Whether the cluster runs Alpenglow, so that its slots do not pass by the clock and may go back.
   * Not before it is reported.
   */
  setAlpenglow(isAlpenglow: boolean): void;
  /** Returns whether the epoch was accepted: false if it is invalid. */
  setEpoch(epoch: EpochLeaders): boolean;
  /** Drops all schedules, because they belong to another cluster. */
  forgetEpochs(): void;
  setContacts(contacts: Iterable<Contact>): void;
  /** Replaces the list of leaders that do not vote and are skipped. */
  setDelinquent(identities: Iterable<string>): void;
  /** The version that a leader gossips; null if none. */
  versionOf(identity: string): string | null;
  /** The leader of a slot; null if the schedule is unknown. */
  leaderAt(slot: number): string | null;
  /** The leader's share of the slots of the newest known epoch: its share of all stake. */
  stakeShareOf(identity: string): number;
  readonly slotTimeMs: number;
  /** Read by the hot path. */
  readonly plan: Plan | null;
  /**
   * The current slot, or the slot at a past time as far as announcements show it by now; null if
   * unknown.
   */
  currentSlot(atNs?: number): number | null;
  /** Slot sources that have reported at least once. */
  slotSources(): readonly SlotSourceStatus[];
  readonly counters: RouteCounters;
  status(): RouterStatus;
  start(): void;
  /** Ends the timer; the last plan stays readable. */
  stop(): void;
}

/** A guess for a leader on another continent, until measured. */
const ROUND_TRIP_MS = 100;
const NEEDED_MS = 100;
const GUESSES: LeaderTimes = {
  roundTripMs: () => ROUND_TRIP_MS,
  neededMs: () => NEEDED_MS,
  reliabilityOf: () => 1,
};

export function createRouter(deps: RouterDeps, options: RouterOptions): Router {
  const { clock } = deps;
  const counters = new RouteCounters();
  const slots = createSlotClock({ origins: options.slotOrigins ?? {} }, counters);
  const schedule = createSchedule(counters);
  const contacts = createContacts(counters, options.deny);
  slots.allowStandstill(false);
  const back = new BackExpectation(clock, slots);
  const updater = new PlanUpdater(deps, options, { slots, schedule, contacts, counters });
  return withFastProperties({
    slotTimeHint: slots.hint.bind(slots),
    setConfirmationStalled: back.setStalled.bind(back),
    setAlpenglow: slots.allowStandstill.bind(slots),
    slotEvent(kind, slot, source) {
      slots.observe(kind, slot, clock.nowNs(), source);
      updater.check();
    },
    setEpoch(epoch) {
      const isAccepted = schedule.setEpoch(epoch);
      if (isAccepted) updater.renew();
      return isAccepted;
    },
    forgetEpochs() {
      schedule.clear();
      updater.renew();
    },
    setContacts(list) {
      contacts.replace(list);
      updater.renew();
    },
    setDelinquent(identities) {
      contacts.setDelinquent(identities);
      updater.renew();
    },
    versionOf: (identity) => contacts.version(identity),
    leaderAt: (slot) => schedule.leaderAt(slot),
    stakeShareOf: (identity) => schedule.shareOf(identity),
    get slotTimeMs() {
      return slots.slotTimeMs;
    },
    get plan() {
      return updater.plan;
    },
    currentSlot: (atNs) => (atNs === undefined ? slots.current(clock.nowNs()) : slots.at(atNs)),
    slotSources: () => slots.sources(clock.nowNs()),
    counters,
    status: () => statusOf({ slots, schedule, contacts, plan: updater.plan }, clock.nowNs()),
    start: () => updater.start(),
    stop() {
      updater.stop();
      back.stop();
    },
  });
}

/**
 * Tells the slot clock when slots are likely to go back: while nothing is confirmed, and shortly
 * after that, because the first block after the migration may be confirmed before the clock has
 * followed it, and before the consensus is known.
 */
class BackExpectation {
  readonly #clock: Clock;
  readonly #slots: SlotClock;
  #timer: Timer | null = null;

  constructor(clock: Clock, slots: SlotClock) {
    this.#clock = clock;
    this.#slots = slots;
  }

  setStalled(isStalled: boolean): void {
    this.stop();
    if (isStalled) this.#slots.expectBack(true);
    else {
      this.#timer = this.#clock.after(SLOT_BACK_LIKELY_MS, () => {
        this.#timer = null;
        this.#slots.expectBack(false);
      });
    }
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }
}

interface Sources {
  readonly slots: SlotClock;
  readonly schedule: Schedule;
  readonly contacts: Contacts;
  readonly counters: RouteCounters;
}

/** Holds the plan and the timer for the next one. */
class PlanUpdater {
  plan: Plan | null = null;
  readonly #clock: Clock;
  readonly #onPlan: RouterDeps["onPlan"];
  readonly #onSlotBack: () => void;
  readonly #times: LeaderTimes;
  readonly #options: RouterOptions;
  readonly #sources: Sources;
  #plannedSlot: number | null = null;
  /** `slotRewinds` that `onSlotBack` was called for. */
  #rewinds = 0;
  /** When the plan changes within its slot; null: not before the next slot. */
  #changeNs: number | null = null;
  #timer: Timer | null = null;
  /** When the timer fires. */
  #timerNs = 0;
  #running = false;
  readonly #fire = (): void => {
    this.#timer = null;
    this.check();
  };

  constructor(deps: RouterDeps, options: RouterOptions, sources: Sources) {
    this.#clock = deps.clock;
    this.#onPlan = deps.onPlan;
    this.#onSlotBack = deps.onSlotBack ?? (() => {});
    this.#times = deps.times ?? GUESSES;
    this.#options = options;
    this.#sources = sources;
  }

  start(): void {
    this.#running = true;
    this.check();
  }

  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Replans if due. */
  check(): void {
    const nowNs = this.#clock.nowNs();
    const passed = this.#changeNs !== null && nowNs >= this.#changeNs;
    const { slots, counters } = this.#sources;
    const slot = slots.current(nowNs);
    if (counters.slotRewinds !== this.#rewinds) {
      this.#rewinds = counters.slotRewinds;
      this.#onSlotBack();
    }
    if (passed || slot !== this.#plannedSlot) this.#replan(nowNs);
    this.#arm(nowNs);
  }

  /** Replans because an input changed. */
  renew(): void {
    const nowNs = this.#clock.nowNs();
    this.#replan(nowNs);
    this.#arm(nowNs);
  }

  #replan(nowNs: number): void {
    const slot = this.#sources.slots.current(nowNs);
    this.#plannedSlot = slot;
    this.#changeNs = null;
    const next = slot === null ? null : this.#planFor(slot, nowNs);
    const { plan } = this;
    const same = next === null || plan === null ? next === plan : samePlan(next, plan);
    if (same) return;
    this.plan = next;
    this.#sources.counters.plansPublished += 1;
    this.#onPlan(next);
  }

  #planFor(slot: number, nowNs: number): Plan {
    const { slots, schedule, contacts, counters } = this.#sources;
    counters.plansMade += 1;
    const { slotTimeMs } = slots;
    const dueNs = slots.nextSlotNs(nowNs);
    const slotLeftMs = dueNs === null ? slotTimeMs : Math.max(0, (dueNs - nowNs) / NS_PER_MS);
    const { leaders, warmWindows } = this.#options;
    const moment = { slot, slotLeftMs, slotTimeMs, leaders, warmWindows };
    const planned = makePlan({ ...moment, schedule, contacts, times: this.#times });
    if (planned.changesInMs !== null) this.#changeNs = nowNs + planned.changesInMs * NS_PER_MS;
    return planned.plan;
  }

  /** Arms the timer for the next slot, or for an earlier plan change. */
  #arm(nowNs: number): void {
    const dueNs = this.#running ? this.#sources.slots.nextSlotNs(nowNs) : null;
    // Without a current slot there is nothing to wait for: the next event rearms the timer.
    if (dueNs === null) {
      this.#timer?.cancel();
      this.#timer = null;
      return;
    }
    const wakeNs = Math.min(dueNs, this.#changeNs ?? dueNs);
    const delayMs = Math.max(1, Math.ceil((wakeNs - nowNs) / NS_PER_MS));
    const timerNs = nowNs + delayMs * NS_PER_MS;
    // Several events report the same slot, and a new timer would cost more than they do.
    if (this.#timer !== null && Math.abs(timerNs - this.#timerNs) <= NS_PER_MS) return;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(delayMs, this.#fire);
    this.#timerNs = timerNs;
  }
}

interface Parts {
  readonly slots: SlotClock;
  readonly schedule: Schedule;
  readonly contacts: Contacts;
  readonly plan: Plan | null;
}

function statusOf({ slots, schedule, contacts, plan }: Parts, nowNs: number): RouterStatus {
  const slot = slots.current(nowNs);
  const eventNs = slots.lastEventNs;
  return {
    slot,
    slotTimeMs: slots.slotTimeMs,
    slotAgeMs: eventNs === null ? null : (nowNs - eventNs) / NS_PER_MS,
    scheduleCovers: slot !== null && schedule.covers(slot),
    epochs: schedule.epochs,
    contacts: contacts.size,
    delinquent: contacts.delinquentCount,
    targets: plan?.send.length ?? 0,
  };
}
