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
import { REJECTIONS, type Rejection, type RejectionReason } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Principal } from "../limits/access-control.ts";
import { charged, intervalNs, waitNs } from "../limits/gcra.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import {
  EMPTY_RESPONSES_BURST,
  EMPTY_RESPONSES_PER_SECOND,
  RESPONSES_PER_SLICE_MAX,
} from "./limits.ts";
import { Unread } from "./response-end.ts";

/** Takes nanoseconds from receipt to answer. */
export interface LatencySink {
  record(ns: number): void;
}

/** One that waits for a stage: an exchange, as far as the desk knows it. */
export interface PendingRequest {
  /** `Clock.nowNs` when the waiting began. */
  readonly receivedNs: number;
  /** Whether it stands in the queue, and between whom. The desk's own. */
  isQueued: boolean;
  previous: PendingRequest | null;
  next: PendingRequest | null;
  /** Answers with this refusal what has no answer yet. */
  timeOut(rejection: Rejection): void;
  respond500(error: unknown): void;
}

export interface RequestTrackerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Null when nobody measures. */
  readonly latency: LatencySink | null;
  /** Told of what a known account was refused; not given when nobody listens. */
  readonly rejected?:
    | ((principal: Principal, rejection: Rejection, bytes: number) => void)
    | undefined;
  /** Counts what each key did; not given when nobody counts. */
  readonly usage?: UsageSink | undefined;
}

export interface UsageSink {
  /** A request with a good key was answered; `reason` is null when it was accepted. */
  request(keyId: string, reason: RejectionReason | null, bytes: number): void;
}

export interface RequestTrackerOptions {
  /** How long a complete request may wait for its answer. */
  readonly requestDeadlineMs: number;
}

export interface HttpCounters {
  /** Connections that are open now. */
  connections: number;
  /** Connections closed at once, because there were too many. */
  connectionsRejected: number;
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
  closed: number;
  /** Connections closed with one too many of the answers without a body. */
  emptyBodyClosed: number;
  /** Answers that waited for the next turn, and for a client to take in the ones before. */
  responsesDeferred: number;
  responsesUnread: number;
  /** Errors thrown while a request was handled. */
  handlerErrors: number;
}

export interface HttpStats {
  readonly counters: HttpCounters;
  readonly rejections: Record<RejectionReason, number>;
}

export class RequestTracker {
  /** Whether new work is refused. */
  draining = false;
  readonly counters: HttpCounters;
  /** Refusals by reason; of a batch, those of its calls. */
  readonly rejections: Record<RejectionReason, number>;
  /** Answers that wait for their clients to read. */
  readonly unread = new Unread();
  readonly #deps: RequestTrackerDeps;
  readonly #deadlineNs: number;
  readonly #tickMs: number;
  /** Gives up those whose deadline has passed. */
  readonly #slicer: TimeSlicer;
  #running = false;
  #timer: Timer | null = null;
  #first: PendingRequest | null = null;
  #last: PendingRequest | null = null;
  #onIdle: (() => void) | null = null;
  /** Answers given since a turn ended, at least. */
  #responses = 0;
  readonly #nextTurn = (): void => {
    this.#responses = 0;
  };
  /** The state of the limit of answers without a body. */
  #emptyBodyFullNs = 0;

  constructor(deps: RequestTrackerDeps, options: RequestTrackerOptions) {
    this.#deps = deps;
    this.#deadlineNs = options.requestDeadlineMs * NS_PER_MS;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(TICK_MS_MAX, options.requestDeadlineMs / 10));
    this.#slicer = createTimeSlicer(deps.clock, () => this.#expire());
    const figures = newStats();
    this.counters = figures.counters;
    this.rejections = figures.rejections;
  }

  start(): void {
    this.#running = true;
    if (this.#first !== null) this.#watch();
  }

  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#slicer.stop();
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
  enqueue(pending: PendingRequest): void {
    pending.isQueued = true;
    pending.previous = this.#last;
    if (this.#last === null) this.#first = pending;
    else this.#last.next = pending;
    this.#last = pending;
    if (this.#timer === null) this.#watch();
  }

  finished(pending: PendingRequest): void {
    this.counters.requestsOpen -= 1;
    if (pending.isQueued) this.#unlink(pending);
    if (this.#onIdle !== null) this.#tellIdle();
  }

  /**
   * Counts an answer; whether it may be given now or has to wait for the next turn. That there is a
   * next turn is asked for only now and then: few answers a turn cost nothing. One that was held
   * before, `isHeld`, is not counted as deferred again.
   */
  allowResponse(isDeferred = false): boolean {
    this.#responses += 1;
    if (this.#responses === RESPONSES_UNTIL_ASKED) setImmediate(this.#nextTurn);
    if (this.#responses <= RESPONSES_PER_SLICE_MAX) return true;
    if (!isDeferred) this.counters.responsesDeferred += 1;
    return false;
  }

  /** Counts an answer without a body; whether its connection may go on. */
  allowEmptyBody(): boolean {
    const nowNs = this.#deps.clock.nowNs();
    const full = this.#emptyBodyFullNs;
    if (waitNs(full, nowNs, EMPTY_RESPONSE_INTERVAL_NS, EMPTY_RESPONSES_BURST) > 0) {
      this.counters.emptyBodyClosed += 1;
      return false;
    }
    this.#emptyBodyFullNs = charged(full, nowNs, EMPTY_RESPONSE_INTERVAL_NS);
    return true;
  }

  /** Something was refused; `owner` is null while it is not known whose it was. */
  rejected(principal: Principal | null, rejection: Rejection, bytes: number): void {
    this.rejections[rejection.reason] += 1;
    if (principal === null) return;
    this.#deps.rejected?.(principal, rejection, bytes);
    this.#deps.usage?.request(principal.keyId, rejection.reason, bytes);
  }

  /** A submission was accepted; `owner` is null where none is asked for. */
  accepted(principal: Principal | null, bytes: number): void {
    this.counters.accepted += 1;
    if (principal !== null) this.#deps.usage?.request(principal.keyId, null, bytes);
  }

  /** A stage answered a request that was complete at `receivedNs`. */
  recordLatency(receivedNs: number): void {
    this.#deps.latency?.record(this.#deps.clock.nowNs() - receivedNs);
  }

  handlerFailed(error: unknown): void {
    this.counters.handlerErrors += 1;
    this.#deps.log.error({ err: error }, "a request could not be handled");
  }

  #unlink(pending: PendingRequest): void {
    pending.isQueued = false;
    if (pending.previous === null) this.#first = pending.next;
    else pending.previous.next = pending.next;
    if (pending.next === null) this.#last = pending.previous;
    else pending.next.previous = pending.previous;
    pending.previous = null;
    pending.next = null;
  }

  /** Looks at deadlines until a look finds that nobody waits. */
  #watch(): void {
    if (!this.#running) return;
    this.#timer = this.#deps.clock.every(this.#tickMs, () => this.#slicer.start());
  }

  /** Gives up as many as one turn has. Answers whether there may be more. */
  #expire(): boolean {
    if (this.#first === null) {
      this.#timer?.cancel();
      this.#timer = null;
    }
    const nowNs = this.#deps.clock.nowNs();
    for (let left = EXPIRED_PER_SLICE; left > 0; left -= 1) {
      const head = this.#first;
      if (head === null || nowNs - head.receivedNs < this.#deadlineNs) return false;
      this.#unlink(head);
      this.counters.expired += 1;
      this.#timeOut(head);
    }
    return true;
  }

  #timeOut(pending: PendingRequest): void {
    const deadlineMs = this.#deadlineNs / NS_PER_MS;
    const rejection: Rejection = {
      reason: "overloaded",
      message:
        `no answer within ${deadlineMs} ms; the transaction may have been sent, ` +
        "and sending the same one again does no harm",
      data: { deadlineMs },
    };
    try {
      pending.timeOut(rejection);
    } catch (error) {
      pending.respond500(error);
    }
  }

  #tellIdle(): void {
    if (this.counters.requestsOpen > 0 || this.#onIdle === null) return;
    const act = this.#onIdle;
    this.#onIdle = null;
    act();
  }
}

const RESPONSES_UNTIL_ASKED = RESPONSES_PER_SLICE_MAX / 4;
/** Some 15 us each; below what `allowResponse` lets through in a turn. */
const EXPIRED_PER_SLICE = RESPONSES_UNTIL_ASKED;
const EMPTY_RESPONSE_INTERVAL_NS = intervalNs(EMPTY_RESPONSES_PER_SECOND);
const TICK_MS_MIN = 5;
const TICK_MS_MAX = 50;

function newStats(): HttpStats {
  const counters: HttpCounters = {
    connections: 0,
    connectionsRejected: 0,
    connectionsCrowded: 0,
    connectionsSlow: 0,
    requests: 0,
    requestsOpen: 0,
    accepted: 0,
    aborted: 0,
    expired: 0,
    closed: 0,
    emptyBodyClosed: 0,
    responsesDeferred: 0,
    responsesUnread: 0,
    handlerErrors: 0,
  };
  const zeros = Object.keys(REJECTIONS).map((reason) => [reason, 0]);
  // The keys are those of the table, which `Object.keys` answers as plain strings.
  return { counters, rejections: Object.fromEntries(zeros) as Record<RejectionReason, number> };
}
