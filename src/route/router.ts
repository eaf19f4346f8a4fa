/**
 * Keeps the plan: which leaders to send to and to keep warm, now.
 *
 * The plan is made anew when the slot, the schedule or the contacts change, never for a
 * transaction; the hot path reads the field `plan`. A timer runs to the moment at which the next
 * slot is due, so that slots without an event pass as well. `plan` is null while the slot is not
 * known, at the start and when the feed has been silent for too long.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import type { Plan } from "../core/flow.ts";
import { type Contact, type Contacts, createContacts } from "./contacts.ts";
import { createRouteCounters, type RouteCounters } from "./counters.ts";
import { makePlan, samePlan } from "./planner.ts";
import { createSchedule, type EpochLeaders, type Schedule } from "./schedule.ts";
import { createSlotClock, type SlotClock, type SlotEventKind } from "./slots.ts";

export interface RouterDeps {
  readonly clock: Clock;
  /** Called with each new plan, and with null when it ends. Must not throw. */
  readonly onPlan: (plan: Plan | null) => void;
}

export interface RouterOptions {
  /** `[send] leaders`: how many leaders a transaction is fanned out to. */
  readonly leaders: number;
  /** How many leaders' connections are held open, counted from the current one. */
  readonly warmWindows: number;
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
  /** Leaders that a transaction would be sent to now. */
  readonly targets: number;
}

export interface Router {
  /** A slot started, ended, or was asked for. */
  slotEvent(kind: SlotEventKind, slot: number): void;
  setEpoch(epoch: EpochLeaders): void;
  setContacts(contacts: Iterable<Contact>): void;
  /** What the hot path reads. */
  readonly plan: Plan | null;
  currentSlot(): number | null;
  readonly counters: RouteCounters;
  status(): RouterStatus;
  start(): void;
  /** Ends the timer; the last plan stays readable. */
  stop(): void;
}

export function createRouter(deps: RouterDeps, options: RouterOptions): Router {
  const { clock, onPlan } = deps;
  const counters = createRouteCounters();
  const slots = createSlotClock({}, counters);
  const schedule = createSchedule(counters);
  const contacts = createContacts(counters);
  let plan: Plan | null = null;
  let plannedSlot: number | null = null;
  let timer: Timer | null = null;
  let running = false;

  function replan(): void {
    const slot = slots.current(clock.nowNs());
    plannedSlot = slot;
    let next: Plan | null = null;
    if (slot !== null) {
      counters.plansMade += 1;
      next = makePlan({ ...options, slot, schedule, contacts });
    }
    const same = next === null || plan === null ? next === plan : samePlan(next, plan);
    if (same) return;
    plan = next;
    counters.plansPublished += 1;
    onPlan(next);
  }

  function tick(): void {
    timer?.cancel();
    timer = null;
    const nowNs = clock.nowNs();
    if (slots.current(nowNs) !== plannedSlot) replan();
    if (!running) return;
    const dueNs = slots.nextSlotNs(nowNs);
    // Without a current slot there is nothing to wait for: the next event starts the timer again.
    if (dueNs === null) return;
    timer = clock.after(Math.max(1, Math.ceil((dueNs - nowNs) / NS_PER_MS)), tick);
  }

  return {
    slotEvent(kind, slot) {
      slots.observe(kind, slot, clock.nowNs());
      tick();
    },
    setEpoch(epoch) {
      if (schedule.setEpoch(epoch)) replan();
    },
    setContacts(list) {
      contacts.replace(list);
      replan();
    },
    get plan() {
      return plan;
    },
    currentSlot: () => slots.current(clock.nowNs()),
    counters,
    status: () => statusOf({ slots, schedule, contacts, plan }, clock.nowNs()),
    start() {
      running = true;
      tick();
    },
    stop() {
      running = false;
      timer?.cancel();
      timer = null;
    },
  };
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
    targets: plan?.send.length ?? 0,
  };
}
