/**
 * What all exchanges share: counters, the log, and one deadline for those that wait.
 *
 * uWebSockets.js has no timeout once a body is complete, so a stage that never answers would hold
 * its client for ever. Everyone waits equally long, so those that wait form a queue by time, and
 * one timer looks at its head: no timer for each request. A stage that hangs makes all of them
 * late at once, and they are answered a few in a turn of the event loop.
 */

import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import { REFUSALS, type Refusal, type RefusalReason } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { KeyOwner } from "../limits/gate.ts";
import { charged, intervalNs, waitNs } from "../limits/gcra.ts";
import { createTurns, type Turns } from "../runtime/time-slice.ts";
import {
  ANSWERS_A_TURN_MAX,
  BODILESS_ANSWERS_BURST,
  BODILESS_ANSWERS_PER_SECOND,
} from "./limits.ts";
import { Unread } from "./response-end.ts";

/** Takes nanoseconds from receipt to answer. */
export interface LatencySink {
  record(ns: number): void;
}

/** One that waits for a stage: an exchange, as far as the desk knows it. */
export interface Waiter {
  /** `Clock.nowNs` when the waiting began. */
  readonly receivedNs: number;
  /** Whether it stands in the queue, and between whom. The desk's own. */
  waiting: boolean;
  previous: Waiter | null;
  next: Waiter | null;
  /** Answers with this refusal what has no answer yet. */
  giveUp(refusal: Refusal): void;
  fail(error: unknown): void;
}

export interface DeskDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Null when nobody measures. */
  readonly latency: LatencySink | null;
  /** Told of what a known account was refused; not given when nobody listens. */
  readonly refused?: ((owner: KeyOwner, refusal: Refusal, bytes: number) => void) | undefined;
  /** Counts what each key did; not given when nobody counts. */
  readonly usage?: UsageSink | undefined;
}

export interface UsageSink {
  /** A request with a good key was answered; `reason` is null when it was accepted. */
  request(keyId: string, reason: RefusalReason | null, bytes: number): void;
}

export interface DeskOptions {
  /** How long a complete request may wait for its answer. */
  readonly requestDeadlineMs: number;
}

export interface DeskCounters {
  /** Connections that are open now. */
  connections: number;
  /** Connections closed at once, because there were too many. */
  connectionsRefused: number;
  /** Connections that fronts closed at once, because their address held its share. */
  connectionsCrowded: number;
  /** Connections that fronts closed, because a head or a body was not whole in its time. */
  connectionsSlow: number;
  /** Requests that came in. */
  requests: number;
  /** Requests that have no answer yet. */
  requestsOpen: number;
  /** Transactions accepted. */
  accepted: number;
  /** Requests whose connection ended before the answer did; also a stream that a client ends. */
  aborted: number;
  /** Requests answered by the deadline instead of a stage. */
  expired: number;
  /** Connections closed for their framing, or for a body that is too large to be read. */
  cut: number;
  /** Connections closed with one too many of the answers without a body. */
  bodilessCut: number;
  /** Answers that waited for the next turn, and for a client to take in the ones before. */
  answersDeferred: number;
  answersUnread: number;
  /** Errors thrown while a request was handled. */
  thrown: number;
}

export interface DeskFigures {
  readonly counters: DeskCounters;
  readonly refusals: Record<RefusalReason, number>;
}

export class Desk {
  /** Whether new work is refused. */
  draining = false;
  readonly counters: DeskCounters;
  /** Refusals by reason; of a batch, those of its calls. */
  readonly refusals: Record<RefusalReason, number>;
  /** Answers that wait for their clients to read. */
  readonly unread = new Unread();
  readonly #deps: DeskDeps;
  readonly #deadlineNs: number;
  readonly #tickMs: number;
  /** Gives up those whose deadline has passed. */
  readonly #turns: Turns;
  #running = false;
  #timer: Timer | null = null;
  #first: Waiter | null = null;
  #last: Waiter | null = null;
  #onIdle: (() => void) | null = null;
  /** Answers given since a turn ended, at least. */
  #answers = 0;
  readonly #nextTurn = (): void => {
    this.#answers = 0;
  };
  /** The state of the limit of answers without a body. */
  #bodilessFullNs = 0;

  constructor(deps: DeskDeps, options: DeskOptions) {
    this.#deps = deps;
    this.#deadlineNs = options.requestDeadlineMs * NS_PER_MS;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(TICK_MS_MAX, options.requestDeadlineMs / 10));
    this.#turns = createTurns(deps.clock, () => this.#expire());
    const figures = newFigures();
    this.counters = figures.counters;
    this.refusals = figures.refusals;
  }

  start(): void {
    this.#running = true;
    if (this.#first !== null) this.#watch();
  }

  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#turns.stop();
  }

  /** Calls `act` once nobody waits for an answer any more. */
  whenIdle(act: () => void): void {
    this.#onIdle = act;
    this.#tellIdle();
  }

  opened(): void {
    this.counters.requests += 1;
    this.counters.requestsOpen += 1;
  }

  /** Puts one whose body is complete at the end of the queue. */
  wait(waiter: Waiter): void {
    waiter.waiting = true;
    waiter.previous = this.#last;
    if (this.#last === null) this.#first = waiter;
    else this.#last.next = waiter;
    this.#last = waiter;
    if (this.#timer === null) this.#watch();
  }

  finished(waiter: Waiter): void {
    this.counters.requestsOpen -= 1;
    if (waiter.waiting) this.#unlink(waiter);
    if (this.#onIdle !== null) this.#tellIdle();
  }

  /**
   * Counts an answer; whether it may be given now or has to wait for the next turn. That there is a
   * next turn is asked for only now and then: few answers a turn cost nothing. One that was held
   * before, `isHeld`, is not counted as deferred again.
   */
  allowAnswer(isHeld = false): boolean {
    this.#answers += 1;
    if (this.#answers === ANSWERS_UNTIL_ASKED) setImmediate(this.#nextTurn);
    if (this.#answers <= ANSWERS_A_TURN_MAX) return true;
    if (!isHeld) this.counters.answersDeferred += 1;
    return false;
  }

  /** Counts an answer without a body; whether its connection may go on. */
  allowBodiless(): boolean {
    const nowNs = this.#deps.clock.nowNs();
    const full = this.#bodilessFullNs;
    if (waitNs(full, nowNs, BODILESS_INTERVAL_NS, BODILESS_ANSWERS_BURST) > 0) {
      this.counters.bodilessCut += 1;
      return false;
    }
    this.#bodilessFullNs = charged(full, nowNs, BODILESS_INTERVAL_NS);
    return true;
  }

  /** Something was refused; `owner` is null while it is not known whose it was. */
  refused(owner: KeyOwner | null, refusal: Refusal, bytes: number): void {
    this.refusals[refusal.reason] += 1;
    if (owner === null) return;
    this.#deps.refused?.(owner, refusal, bytes);
    this.#deps.usage?.request(owner.keyId, refusal.reason, bytes);
  }

  /** A submission was accepted; `owner` is null where none is asked for. */
  accepted(owner: KeyOwner | null, bytes: number): void {
    this.counters.accepted += 1;
    if (owner !== null) this.#deps.usage?.request(owner.keyId, null, bytes);
  }

  /** A stage answered a request that was complete at `receivedNs`. */
  settled(receivedNs: number): void {
    this.#deps.latency?.record(this.#deps.clock.nowNs() - receivedNs);
  }

  failed(error: unknown): void {
    this.counters.thrown += 1;
    this.#deps.log.error({ err: error }, "a request could not be handled");
  }

  #unlink(waiter: Waiter): void {
    waiter.waiting = false;
    if (waiter.previous === null) this.#first = waiter.next;
    else waiter.previous.next = waiter.next;
    if (waiter.next === null) this.#last = waiter.previous;
    else waiter.next.previous = waiter.previous;
    waiter.previous = null;
    waiter.next = null;
  }

  /** Looks at deadlines until a look finds that nobody waits. */
  #watch(): void {
    if (!this.#running) return;
    this.#timer = this.#deps.clock.every(this.#tickMs, () => this.#turns.begin());
  }

  /** Gives up as many as one turn has. Answers whether there may be more. */
  #expire(): boolean {
    if (this.#first === null) {
      this.#timer?.cancel();
      this.#timer = null;
    }
    const nowNs = this.#deps.clock.nowNs();
    for (let left = EXPIRED_A_TURN; left > 0; left -= 1) {
      const head = this.#first;
      if (head === null || nowNs - head.receivedNs < this.#deadlineNs) return false;
      this.#unlink(head);
      this.counters.expired += 1;
      this.#giveUp(head);
    }
    return true;
  }

  #giveUp(waiter: Waiter): void {
    const deadlineMs = this.#deadlineNs / NS_PER_MS;
    const refusal: Refusal = {
      reason: "overloaded",
      sentence:
        `no answer within ${deadlineMs} ms; the transaction may have been sent, ` +
        "and sending the same one again does no harm",
      data: { deadlineMs },
    };
    try {
      waiter.giveUp(refusal);
    } catch (error) {
      waiter.fail(error);
    }
  }

  #tellIdle(): void {
    if (this.counters.requestsOpen > 0 || this.#onIdle === null) return;
    const act = this.#onIdle;
    this.#onIdle = null;
    act();
  }
}

const ANSWERS_UNTIL_ASKED = ANSWERS_A_TURN_MAX / 4;
/** Some 15 us each; below what `allowAnswer` lets through in a turn. */
const EXPIRED_A_TURN = ANSWERS_UNTIL_ASKED;
const BODILESS_INTERVAL_NS = intervalNs(BODILESS_ANSWERS_PER_SECOND);
const TICK_MS_MIN = 5;
const TICK_MS_MAX = 50;

function newFigures(): DeskFigures {
  const counters: DeskCounters = {
    connections: 0,
    connectionsRefused: 0,
    connectionsCrowded: 0,
    connectionsSlow: 0,
    requests: 0,
    requestsOpen: 0,
    accepted: 0,
    aborted: 0,
    expired: 0,
    cut: 0,
    bodilessCut: 0,
    answersDeferred: 0,
    answersUnread: 0,
    thrown: 0,
  };
  const zeros = Object.keys(REFUSALS).map((reason) => [reason, 0]);
  // The keys are those of the table, which `Object.keys` answers as plain strings.
  return { counters, refusals: Object.fromEntries(zeros) as Record<RefusalReason, number> };
}
