/**
 * State that all requests share: counters, the log, and one deadline for pending requests.
 *
 * uWebSockets.js has no timeout once a body is complete, so a stage that never responds would block
 * its client forever. All requests have the same deadline, so pending ones form a queue in order of
 * time and one timer checks its head: no timer per request. When a stage hangs, many expire at the
 * same time; they are answered in slices over several event loop turns.
 */

import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import { REJECTION_NAMES, type Rejection, type RejectionReason } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Principal } from "../limits/access-control.ts";
import { charged, intervalNs, waitNs } from "../limits/gcra.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import {
  EMPTY_RESPONSES_BURST,
  EMPTY_RESPONSES_PER_SECOND,
  RESPONSES_PER_SLICE_MAX,
} from "./limits.ts";
import { keepAliveLine, LIBRARY_IDLE_MS } from "./response.ts";
import { Unread } from "./response-end.ts";

/** Receives the nanoseconds from receipt to response. */
export interface LatencySink {
  record(ns: number): void;
}

/** A request that waits for a stage: the part of a request context that the tracker uses. */
export interface PendingRequest {
  /** `Clock.nowNs` when the body was complete. */
  readonly receivedNs: number;
  /** Whether it is in the queue, and its neighbours. Only the tracker writes these. */
  isQueued: boolean;
  previous: PendingRequest | null;
  next: PendingRequest | null;
  /** Rejects what has no response yet. */
  timeOut(rejection: Rejection): void;
  respond500(error: unknown): void;
}

/** Who used a key. */
export type KeyHolder = Pick<Principal, "account" | "keyId">;

/** What is notified of the rejections of known accounts. */
export interface RejectionSinks {
  /** Called for each rejection of a known account. */
  readonly rejected?:
    | ((holder: KeyHolder, rejection: Rejection, bytes: number) => void)
    | undefined;
  /** Counts requests per key; null: usage is not counted. */
  readonly usage?: UsageSink | null | undefined;
}

export interface RequestTrackerDeps extends RejectionSinks {
  readonly clock: Clock;
  readonly log: Log;
  /** null: latency is not measured. */
  readonly latency: LatencySink | null;
}

export interface UsageSink {
  /** A request with a valid key was answered; `reason` is null when it was accepted. */
  request(keyId: string, reason: RejectionReason | null, bytes: number): void;
}

export interface RequestTrackerOptions {
  /** How long a complete request may wait for its response. */
  readonly requestDeadlineMs: number;
  /** How long at least an idle connection of a client lives; absent: as the HTTP library has it. */
  readonly idleTimeoutMs?: number;
}

export class HttpCounters {
  /** Open connections. */
  connections = 0;
  /** Connections closed immediately, because too many are open. */
  connectionsRejected = 0;
  /** Connections that ingress threads closed while idle, because another client connected. */
  connectionsEvicted = 0;
  /** Connections that ingress threads closed immediately, because their address has its share. */
  connectionsOverAddressLimit = 0;
  /** Connections that ingress threads closed, because a head or body was incomplete at timeout. */
  connectionsReadTimeout = 0;
  /** Requests received. */
  requests = 0;
  /** Requests without a response yet. */
  requestsOpen = 0;
  /** Transactions accepted. */
  accepted = 0;
  /** Requests whose connection ended before the response did; also a stream that a client ends. */
  aborted = 0;
  /** Requests that ended by the deadline. */
  expired = 0;
  /** Connections closed for their framing, or for a body that is too large to read. */
  closed = 0;
  /** Connections closed because they exceeded the limit of responses without a body. */
  emptyBodyClosed = 0;
  /** Responses deferred to the next turn, and responses that wait for the client to read. */
  responsesDeferred = 0;
  responsesUnread = 0;
  /** Requests whose handler threw. */
  handlerErrors = 0;
}

export interface HttpStats {
  readonly counters: HttpCounters;
  readonly rejections: Record<RejectionReason, number>;
}

/** Reports the rejection of a request with a known key, on whatever thread it was answered. */
export function reportRejection(
  { rejected, usage }: RejectionSinks,
  holder: KeyHolder,
  rejection: Rejection,
  bytes: number,
): void {
  rejected?.(holder, rejection, bytes);
  usage?.request(holder.keyId, rejection.reason, bytes);
}

export class RequestTracker {
  /** Whether new work is rejected. */
  draining = false;
  /** Whether connections stay open after a response. */
  keepAlive = true;
  readonly counters: HttpCounters;
  /** Rejections by reason; of a batch, one per call. */
  readonly rejections: Record<RejectionReason, number>;
  /** Responses that wait for their clients to read. */
  readonly unread = new Unread();
  /** The header line that says how long an idle connection lives. */
  readonly keepAliveLine: string;
  readonly #deps: RequestTrackerDeps;
  readonly #deadlineNs: number;
  readonly #tickMs: number;
  /** Times out requests whose deadline has passed. */
  readonly #slicer: TimeSlicer;
  #running = false;
  #timer: Timer | null = null;
  #first: PendingRequest | null = null;
  #last: PendingRequest | null = null;
  #onIdle: (() => void) | null = null;
  /** Responses since a turn ended, at least. */
  #responses = 0;
  readonly #nextTurn = (): void => {
    this.#responses = 0;
  };
  /** GCRA state of the limit of responses without a body. */
  #emptyBodyFullNs = 0;

  constructor(deps: RequestTrackerDeps, options: RequestTrackerOptions) {
    this.#deps = deps;
    this.keepAliveLine = keepAliveLine(options.idleTimeoutMs ?? LIBRARY_IDLE_MS);
    this.#deadlineNs = options.requestDeadlineMs * NS_PER_MS;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(TICK_MS_MAX, options.requestDeadlineMs / 10));
    this.#slicer = createTimeSlicer(deps.clock, () => this.#expire());
    const stats = newStats();
    this.counters = stats.counters;
    this.rejections = stats.rejections;
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

  /** Calls `act` once no request is pending. */
  whenIdle(act: () => void): void {
    this.#onIdle = act;
    this.#tellIdle();
  }

  opened(): void {
    this.counters.requests += 1;
    this.counters.requestsOpen += 1;
  }

  /** Appends a request whose body is complete to the queue. */
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
   * Counts a response; returns whether it may be sent now or must wait for the next turn. The end
   * of the turn is scheduled only every few responses, so light load costs nothing. A response
   * that was deferred before, `isDeferred`, is not counted as deferred again.
   */
  allowResponse(isDeferred = false): boolean {
    this.#responses += 1;
    if (this.#responses === RESPONSES_UNTIL_ASKED) setImmediate(this.#nextTurn);
    if (this.#responses <= RESPONSES_PER_SLICE_MAX) return true;
    if (!isDeferred) this.counters.responsesDeferred += 1;
    return false;
  }

  /** Counts a response without a body; returns whether its connection may continue. */
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

  /** A request was rejected; `principal` is null when the caller is unknown. */
  rejected(principal: Principal | null, rejection: Rejection, bytes: number): void {
    this.rejections[rejection.reason] += 1;
    if (principal !== null) reportRejection(this.#deps, principal, rejection, bytes);
  }

  /** A submission was accepted; `principal` is null where no key is needed. */
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

  /** Checks deadlines periodically while requests are pending. */
  #watch(): void {
    if (!this.#running) return;
    this.#timer = this.#deps.clock.every(this.#tickMs, () => this.#slicer.start());
  }

  /** Times out one slice of requests. Returns whether there may be more. */
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
        `no response within ${deadlineMs} ms; the transaction may have been sent, ` +
        "and it is safe to send the same one again",
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
/** About 15 us each; below what `allowResponse` permits per turn. */
const EXPIRED_PER_SLICE = RESPONSES_UNTIL_ASKED;
const EMPTY_RESPONSE_INTERVAL_NS = intervalNs(EMPTY_RESPONSES_PER_SECOND);
const TICK_MS_MIN = 5;
const TICK_MS_MAX = 50;

function newStats(): HttpStats {
  const zeros = REJECTION_NAMES.map((reason) => [reason, 0]);
  // `Object.fromEntries` loses the key type; the keys are those names.
  return {
    counters: new HttpCounters(),
    rejections: Object.fromEntries(zeros) as Record<RejectionReason, number>,
  };
}
