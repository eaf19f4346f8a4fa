/**
 * Keeps the plan: which leaders to send to and to keep warm, now.
 *
 * The plan is made anew when the slot, the schedule or the contacts change, never for a
 * transaction; the hot path reads the field `plan`. A timer runs to the moment at which the next
 * slot is due, so that slots without an event pass as well, or to the moment within the slot at
 * which the next leader is. `plan` is null while the slot is not known, at the start and when the
 * feed has been silent for too long.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import type { Plan } from "../core/flow.ts";
import { withFastProperties } from "../runtime/fast-object.ts";
import { type Contact, type Contacts, createContacts } from "./contacts.ts";
import { createRouteCounters, type RouteCounters } from "./counters.ts";
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
  /** What is known of how long leaders take. */
  readonly times?: LeaderTimes;
}

export interface RouterOptions {
  /** `[send] leaders`: how many leaders a transaction is fanned out to. */
  readonly leaders: number;
  /** How many leaders' connections are held open, counted from the current one. */
  readonly warmWindows: number;
  /** `[send] deny`: identities of leaders that are passed over. */
  readonly deny?: readonly string[];
  /** The node that each source of slots speaks for; one that is not named stands for itself. */
  readonly slotOrigins?: Readonly<Partial<Record<SlotSource, string>>>;
}

export interface RouterStatus {
  /** The slot in progress; null when not known. */
  readonly slot: number | null;
  readonly slotTimeMs: number;
  /** Time since the last slot event in milliseconds; null before the first. */
  readonly slotAgeMs: number | null;
  /** Whether the leader of the slot in progress is known. */
  readonly scheduleCovers: boolean;
  /** Epochs whose schedule is held. */
  readonly epochs: readonly number[];
  /** Leaders with an address. */
  readonly contacts: number;
  /** Leaders that are passed over as delinquent. */
  readonly delinquent: number;
  /** Leaders that a transaction would be sent to now. */
  readonly targets: number;
}

export interface Router {
  /** A slot started, ended, or was asked for, as that source says. */
  slotEvent(kind: SlotEventKind, slot: number, source?: SlotSource): void;
  /** The slot time in milliseconds, as a node measured it before this process began. */
  slotTimeHint(slotTimeMs: number): void;
  /** Answers whether it was taken: false where it makes no sense. */
  setEpoch(epoch: EpochLeaders): boolean;
  /** The schedules that were set are another cluster's: no leader is known. */
  forgetEpochs(): void;
  setContacts(contacts: Iterable<Contact>): void;
  /** Leaders that do not vote, and are passed over for it; replaces the list before. */
  setDelinquent(identities: Iterable<string>): void;
  /** The version that a leader gossips; null when it tells none. */
  versionOf(identity: string): string | null;
  /** Who leads a slot; null where the schedule is not known. */
  leaderAt(slot: number): string | null;
  /** The leader's share of the slots of the newest epoch that is known: its share of all stake. */
  stakeShareOf(identity: string): number;
  readonly slotTimeMs: number;
  /** What the hot path reads. */
  readonly plan: Plan | null;
  /**
   * The slot in progress, or the one that was in progress at a time, as far as announcements of
   * slots show that by now; null when not known.
   */
  currentSlot(atNs?: number): number | null;
  /** The sources of slots that have said something. */
  slotSources(): readonly SlotSourceStatus[];
  readonly counters: RouteCounters;
  status(): RouterStatus;
  start(): void;
  /** Ends the timer; the last plan stays readable. */
  stop(): void;
}

/** A guess of a leader on another continent, until it was measured. */
const ROUND_TRIP_MS = 100;
const NEEDED_MS = 100;
const GUESSES: LeaderTimes = {
  roundTripMs: () => ROUND_TRIP_MS,
  neededMs: () => NEEDED_MS,
  reliabilityOf: () => 1,
};

export function createRouter(deps: RouterDeps, options: RouterOptions): Router {
  const { clock } = deps;
  const counters = createRouteCounters();
  const slots = createSlotClock({ origins: options.slotOrigins ?? {} }, counters);
  const schedule = createSchedule(counters);
  const contacts = createContacts(counters, options.deny);
  const updater = new PlanUpdater(deps, options, { slots, schedule, contacts, counters });
  return withFastProperties({
    slotTimeHint: slots.hint.bind(slots),
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
    stop: () => updater.stop(),
  });
}

interface Sources {
  readonly slots: SlotClock;
  readonly schedule: Schedule;
  readonly contacts: Contacts;
  readonly counters: RouteCounters;
}

/** The plan and the timer that brings the next one. */
class PlanUpdater {
  plan: Plan | null = null;
  readonly #clock: Clock;
  readonly #onPlan: RouterDeps["onPlan"];
  readonly #times: LeaderTimes;
  readonly #options: RouterOptions;
  readonly #sources: Sources;
  #plannedSlot: number | null = null;
  /** When the plan changes within its slot; null: not before the next one. */
  #changeNs: number | null = null;
  #timer: Timer | null = null;
  /** When that goes off. */
  #timerNs = 0;
  #running = false;
  readonly #fire = (): void => {
    this.#timer = null;
    this.check();
  };

  constructor(deps: RouterDeps, options: RouterOptions, sources: Sources) {
    this.#clock = deps.clock;
    this.#onPlan = deps.onPlan;
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

  /** Plans when the time for it has come. */
  check(): void {
    const nowNs = this.#clock.nowNs();
    const passed = this.#changeNs !== null && nowNs >= this.#changeNs;
    if (passed || this.#sources.slots.current(nowNs) !== this.#plannedSlot) this.#replan(nowNs);
    this.#arm(nowNs);
  }

  /** What the plan is made of has changed. */
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

  /** Waits for the next slot, or for the change of the plan before it. */
  #arm(nowNs: number): void {
    const dueNs = this.#running ? this.#sources.slots.nextSlotNs(nowNs) : null;
    // Without a current slot there is nothing to wait for: the next event starts the timer again.
    if (dueNs === null) {
      this.#timer?.cancel();
      this.#timer = null;
      return;
    }
    const wakeNs = Math.min(dueNs, this.#changeNs ?? dueNs);
    const delayMs = Math.max(1, Math.ceil((wakeNs - nowNs) / NS_PER_MS));
    const timerNs = nowNs + delayMs * NS_PER_MS;
    // Several events say the same of a slot, and another timer costs more than what they say.
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
