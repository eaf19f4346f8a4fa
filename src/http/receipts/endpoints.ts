/**
 * What an account may ask of its receipts: one, at once or when its transaction has ended; a list;
 * and a stream. In this order: key, limit, form of the request, and only then the receipts. A key
 * sees what its account sent, and nothing tells whether another account sent something else: what
 * both sent is one transaction, whose receipt counts the submissions of both. What is refused here
 * stands neither in the account's usage nor among its refusals, because both tell of what it sent;
 * a key that is not good here or now is the exception: its account sees it among its refusals.
 */

import type { Clock } from "../../core/clock.ts";
import type { Refusal } from "../../core/errors.ts";
import { type Gate, type KeyOwner, retryAfterSeconds } from "../../limits/gate.ts";
import type { Exchange } from "../exchange.ts";
import { HEADERS_DOCUMENT, HEADERS_EVENTS, NO_EXTRAS, STATUS_OK } from "../response.ts";
import { createWaits, type WaitCounters } from "./long-poll.ts";
import {
  type Read,
  readListQuery,
  readStreamQuery,
  readWaitQuery,
  SIGNATURE,
  type StreamQuery,
  type WaitQuery,
} from "./query.ts";
import { createReadLimit, type ReadLimit, readLimitRefusal } from "./read-rate-limit.ts";
import type { ReceiptSource } from "./source.ts";
import { createStreams, type StreamCounters, type StreamWire } from "./sse-streams.ts";

export interface ReceiptPagesDeps {
  readonly clock: Clock;
  readonly gate: Gate;
  readonly receipts: ReceiptSource;
  /** Has all that happened so far noted in the receipts; called before they are looked at. */
  readonly settle?: () => void;
}

/** What of a request matters here. */
export interface ReceiptRequest {
  /** The key, "" for none. */
  readonly token: string;
  /** What stands behind the question mark, "" for nothing. */
  readonly query: string;
  /** Whether it is HEAD, which opens no stream. */
  readonly headOnly: boolean;
  /** `Last-Event-ID`, "" for none. */
  readonly lastEventId: string;
}

export interface ReceiptPages {
  one(exchange: Exchange, signature: string, request: ReceiptRequest): void;
  list(exchange: Exchange, request: ReceiptRequest): void;
  stream(exchange: Exchange, request: ReceiptRequest): void;
  /** Answers what is held, ends the streams, and opens none any more. */
  drain(): void;
  readonly counters: ReceiptPageCounters;
}

export interface ReceiptPageCounters {
  readonly reads: Readonly<ReadLimit["counters"]>;
  readonly waits: Readonly<WaitCounters>;
  readonly streams: Readonly<StreamCounters>;
}

export function createReceiptPages(deps: ReceiptPagesDeps): ReceiptPages {
  const { clock, gate, receipts, settle = (): void => {} } = deps;
  const reads = createReadLimit();
  const waits = createWaits({ clock, receipts });
  const streams = createStreams({ clock, receipts, settle });
  let draining = false;

  /** The owner of the key and the query, once both are right and the limit allows it. */
  function admit<Query>(
    exchange: Exchange,
    { token }: ReceiptRequest,
    read: () => Read<Query>,
  ): { readonly owner: KeyOwner; readonly query: Query } | null {
    const owner = gate.find(token, exchange);
    if (owner === null) {
      exchange.refuse(gate.refusalOf(token, exchange));
      return null;
    }
    const wait = reads.charge(owner, clock.nowNs());
    if (wait > 0) {
      const { plan } = owner;
      const extras = { ...NO_EXTRAS, retryAfterSeconds: retryAfterSeconds(wait), plan };
      exchange.refuse(readLimitRefusal(plan, wait), extras);
      return null;
    }
    const answer = read();
    if (answer.kind === "query") return { owner, query: answer.query };
    exchange.refuse(answer.refusal);
    return null;
  }

  function answerOne(exchange: Exchange, signature: string, account: string): void {
    settle();
    const receipt = receipts.find(signature, account);
    if (receipt === null) exchange.refuse(NO_RECEIPT);
    else exchange.send(STATUS_OK, HEADERS_DOCUMENT, JSON.stringify(receipt));
  }

  /** Answers once the transaction has come as far as is waited for, or the time is up. */
  function hold(exchange: Exchange, signature: string, account: string, query: WaitQuery): void {
    const { goal, timeoutMs } = query;
    if (goal !== null) settle();
    const ticket = goal === null ? null : receipts.ticket(signature, account);
    const answer = (): void => {
      try {
        answerOne(exchange, signature, account);
      } catch (error) {
        exchange.fail(error);
      }
    };
    if (goal === null || ticket === null || receipts.reached(ticket, goal)) {
      answer();
      return;
    }
    const held = waits.hold({ account, ticket, goal, timeoutMs, answer });
    if (typeof held === "string") exchange.refuse(tooMany("waits for receipts", held));
    else exchange.onGone = held.leave;
  }

  function openStream(
    exchange: Exchange,
    account: string,
    ask: ReceiptRequest,
    query: StreamQuery,
  ) {
    const { token, lastEventId } = ask;
    const wire: StreamWire = {
      write: (text) => exchange.push(text),
      end: () => exchange.endPieces(),
      cut: () => exchange.drop(),
      mayGoOn: () => gate.find(token, exchange)?.account === account,
    };
    const { states } = query;
    // Whose bound is reached is known before the first byte of the answer.
    const begin = (): void => exchange.beginPieces(HEADERS_EVENTS, () => stream.drained());
    const opened = streams.open({ account, states, lastEventId }, wire, begin);
    if (typeof opened === "string") {
      exchange.refuse(tooMany("streams of receipts", opened));
      return;
    }
    const stream = opened;
    exchange.onGone = stream.left;
  }

  return {
    counters: { reads: reads.counters, waits: waits.counters, streams: streams.counters },
    one(exchange, signature, request) {
      const admitted = admit(exchange, request, () =>
        SIGNATURE.test(signature) ? readWaitQuery(request.query) : NO_SIGNATURE,
      );
      if (admitted === null) return;
      hold(exchange, signature, admitted.owner.account, admitted.query);
    },
    list(exchange, request) {
      const admitted = admit(exchange, request, () => readListQuery(request.query));
      if (admitted === null) return;
      const { owner, query } = admitted;
      exchange.sendMade(STATUS_OK, HEADERS_DOCUMENT, () => {
        settle();
        return JSON.stringify(receipts.list(owner.account, query));
      });
    },
    stream(exchange, request) {
      const admitted = admit(exchange, request, () => readStreamQuery(request.query));
      if (admitted === null) return;
      if (draining) exchange.refuse(DRAINING);
      else if (request.headOnly) exchange.send(STATUS_OK, HEADERS_EVENTS, "");
      else openStream(exchange, admitted.owner.account, request, admitted.query);
    },
    drain() {
      draining = true;
      waits.drain();
      streams.drain();
    },
  };
}

/** `whose` bound is reached: the account's own, or that of all of them. */
function tooMany(what: string, whose: "account" | "all"): Refusal {
  if (whose === "all") {
    return {
      reason: "overloaded",
      sentence: `this edge has no place for more ${what} now; try again a little later`,
      data: {},
    };
  }
  return {
    reason: "rate_limited",
    sentence: `this account has as many ${what} open as it may; one of them must end first`,
    data: {},
  };
}

const NO_SIGNATURE = {
  kind: "refused",
  refusal: {
    reason: "invalid_params",
    sentence: "the path ends with no signature, the first one of a transaction in base58 is needed",
    data: {},
  },
} as const;
const NO_RECEIPT: Refusal = {
  reason: "not_found",
  sentence: "this edge knows of no such transaction sent with this account's keys lately",
  data: {},
};
const DRAINING: Refusal = {
  reason: "overloaded",
  sentence: "this edge is draining and opens no stream; connect anew to reach another one",
  data: {},
};
