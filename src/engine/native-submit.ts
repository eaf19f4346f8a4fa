// Hot path: one call into the engine; allocates the answer.
/**
 * Submissions of the main thread in the native engine: one call, which runs the path of ingress
 * threads (`native/src/submit/path.rs`) on this thread. What it accepts is among the engine's
 * events before its first byte leaves, under a number by which `submitterOf` knows whose it is.
 *
 * The response does not wait until the events are read. This thread reads them after a turn in
 * which several came together, few enough that no other client has to wait for long; the engine
 * wakes it for the rest; and who is about to read what depends on them, a receipt or a metric, has
 * them read before (`Engine.flushEvents`).
 */

import { rejectionOf } from "../core/decode-errors.ts";
import {
  BUSY_REJECTION,
  LEADERS_FULL_REJECTION,
  NO_LEADER_REJECTION,
  overloaded,
  type Rejection,
  RING_FULL_REJECTION,
} from "../core/errors.ts";
import type { Rejected, SubmitResult } from "../core/flow.ts";
import type { Submission, Submit, SubmitCall } from "../http/submit/submission.ts";
import type { DeliveryGate } from "../landing/ports.ts";
import {
  type NativeSubmitting,
  NO_SUBMIT_PATH,
  SIGNATURE_TEXT_MAX,
  SUBMIT_BUSY,
  SUBMIT_INVALID,
  SUBMIT_LEADERS_FULL,
  SUBMIT_NO_LEADER,
  SUBMIT_NUMBERS,
  SUBMIT_RING_FULL,
} from "../native/contract.ts";
import { accountNumber } from "../send/native/account-number.ts";
import type { EngineEvents, Submitter } from "./engine.ts";
import { OWN_NUMBERS, OWN_UNITS_MAX } from "./limits.ts";

export interface NativeSubmitDeps {
  readonly native: NativeSubmitting;
  readonly events: Pick<EngineEvents, "valid" | "invalid">;
  /** Reads the engine's events. */
  readonly flushEvents: () => void;
}

/** The place of `eventsUnread` among the numbers that the engine writes. */
const UNREAD = 5;

export class NativeSubmit {
  /** Transactions that were refused once they were decoded. */
  refused = 0;
  readonly #deps: NativeSubmitDeps;
  /** The engine's handle of the path; 0: not open. */
  #path = 0;
  readonly #text = Buffer.alloc(SIGNATURE_TEXT_MAX + 8 * SUBMIT_NUMBERS);
  readonly #numbers = new Float64Array(
    this.#text.buffer,
    this.#text.byteOffset + SIGNATURE_TEXT_MAX,
    SUBMIT_NUMBERS,
  );
  /** The submitters of the last submissions that were accepted, and the number of the next one. */
  readonly #submitters: Submitter[] = new Array<Submitter>(OWN_NUMBERS).fill(ANONYMOUS);
  #number = 0;
  /** Whether the events are read at the end of this turn. */
  #isReadPending = false;
  readonly #read = (): void => {
    this.#isReadPending = false;
    this.#deps.flushEvents();
  };

  constructor(deps: NativeSubmitDeps) {
    this.#deps = deps;
  }

  /** Whose is the accepted submission of this number, until its record is read. */
  readonly submitterOf = (number: number): Submitter => this.#submitters[number] ?? ANONYMOUS;

  /** Accepts submissions from now on. @throws Error when the engine cannot */
  open(engine: number, decoder: number): void {
    const path = this.#deps.native.submitPathOpen(engine, decoder);
    if (path <= 0) throw new Error(`the native engine cannot accept submissions: status ${path}`);
    this.#path = path;
  }

  /** The engine's handle of the path; 0 while it is not open. */
  get path(): number {
    return this.#path;
  }

  /** As `DeliveryGate.renew`; true without a path. */
  readonly renew: DeliveryGate["renew"] = (bytes, sinceNs, nowNs) =>
    this.#deps.native.submitPathRenew(this.#path, bytes, sinceNs, nowNs) !== 0;

  readonly forget: DeliveryGate["forget"] = (bytes, sinceNs) => {
    this.#deps.native.submitPathForget(this.#path, bytes, sinceNs);
  };

  /** Recent transactions that were forgotten early. */
  get evicted(): number {
    return Math.max(0, this.#deps.native.submitPathEvicted(this.#path));
  }

  /** Accepts nothing more. */
  close(): void {
    if (this.#path !== 0) this.#deps.native.submitPathClose(this.#path);
    this.#path = 0;
  }

  readonly submit: Submit = (submission, done) => {
    done(this.#resultOf(this.#call(submission, false)));
  };

  readonly submitCall: SubmitCall = (submission) => {
    const answer = this.#call(submission, true);
    if (answer === 0) return null;
    const { bytes } = submission;
    const [start = 0, end = 0] = this.#numbers;
    const id = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
    return { id, result: this.#resultOf(answer) };
  };

  #call(submission: Submission, isCall: boolean): number {
    const answer = this.#callOnce(submission, isCall);
    if (answer === SUBMIT_RING_FULL) {
      this.#deps.flushEvents();
      return this.#callOnce(submission, isCall);
    }
    if (answer > 0 && !this.#isReadPending && (this.#numbers[UNREAD] ?? 0) >= OWN_UNITS_MAX) {
      this.#isReadPending = true;
      setImmediate(this.#read);
    }
    return answer;
  }

  #callOnce(submission: Submission, isCall: boolean): number {
    const { bytes, account, keyId, plan, receivedNs, maxRetries } = submission;
    const number = this.#number;
    this.#submitters[number] = { account, keyId, plan };
    const answer = this.#deps.native.submit(
      this.#path,
      bytes,
      isCall,
      number,
      accountNumber(account),
      receivedNs,
      maxRetries ?? -1,
      this.#text,
    );
    if (answer > 0) this.#number = number + 1 === OWN_NUMBERS ? 0 : number + 1;
    return answer;
  }

  #resultOf(answer: number): SubmitResult {
    if (answer > 0) {
      return { kind: "accepted", signature: this.#text.toString("latin1", 0, answer) };
    }
    const { events } = this.#deps;
    switch (answer) {
      case SUBMIT_INVALID: {
        const [, , errorCode = 0, found = 0, needed = 0] = this.#numbers;
        const rejected: Rejected = { kind: "rejected", errorCode, found, needed };
        this.refused += 1;
        events.invalid(errorCode);
        return { kind: "rejected", rejection: rejectionOf(rejected) };
      }
      case SUBMIT_LEADERS_FULL:
      case SUBMIT_NO_LEADER:
        this.refused += 1;
        events.valid();
        return answer === SUBMIT_NO_LEADER ? NO_LEADER : LEADERS_FULL;
      case SUBMIT_BUSY:
        return BUSY;
      case SUBMIT_RING_FULL:
        return RING_FULL;
      case NO_SUBMIT_PATH:
        return STOPPED;
      default:
        throw new Error(`the native engine returned status ${answer}`);
    }
  }
}

const ANONYMOUS: Submitter = { account: "", keyId: "", plan: "" };
const NO_LEADER = rejected(NO_LEADER_REJECTION);
const LEADERS_FULL = rejected(LEADERS_FULL_REJECTION);
const BUSY = rejected(BUSY_REJECTION);
const RING_FULL = rejected(RING_FULL_REJECTION);
const STOPPED = rejected(overloaded("this edge stops"));

function rejected(rejection: Rejection): SubmitResult {
  return { kind: "rejected", rejection };
}
