/**
 * The receipt endpoints of an account: one receipt, immediately or once its transaction has ended;
 * a list; and a stream. Checks run in this order: key, limit, form of the request, receipts. A key
 * sees what its account sent, and no response reveals whether another account sent something: a
 * transaction that both sent has one receipt, which counts the submissions of both. A request
 * rejected here counts neither in the account's usage nor in its rejections, because both describe
 * submissions; a key that is expired or out of its networks is the exception: it does appear in the
 * account's rejections.
 */

import type { Clock } from "../../core/clock.ts";
import type { Rejection } from "../../core/errors.ts";
import type { ReceiptSource } from "../../core/receipt-source.ts";
import {
  type AccessControl,
  type Principal,
  retryAfterSeconds,
} from "../../limits/access-control.ts";
import type { RequestContext } from "../request-context.ts";
import { HEADERS_DOCUMENT, HEADERS_EVENTS, NO_EXTRAS, STATUS_OK } from "../response.ts";
import { createLongPolls, type LongPollCounters } from "./long-poll.ts";
import {
  type Read,
  readListQuery,
  readStreamQuery,
  readWaitQuery,
  SIGNATURE,
  type StreamQuery,
  type WaitQuery,
} from "./query.ts";
import { createReadLimit, type ReadLimit, readLimitRejection } from "./read-rate-limit.ts";
import { createStreams, type SseConnection, type StreamCounters } from "./sse-streams.ts";

export interface ReceiptEndpointsDeps {
  readonly clock: Clock;
  readonly access: AccessControl;
  readonly receipts: ReceiptSource;
  /** Brings receipts up to date; called before they are read. */
  readonly flushEvents?: () => void;
}

/** The parts of a request that are used here. */
export interface ReceiptRequest {
  /** The key; "" for none. */
  readonly token: string;
  /** The query string without its question mark; "" for none. */
  readonly query: string;
  /** Whether it is HEAD, which opens no stream. */
  readonly headOnly: boolean;
  /** `Last-Event-ID`; "" for none. */
  readonly lastEventId: string;
}

export interface ReceiptEndpoints {
  one(context: RequestContext, signature: string, request: ReceiptRequest): void;
  list(context: RequestContext, request: ReceiptRequest): void;
  stream(context: RequestContext, request: ReceiptRequest): void;
  /** Answers the long polls, ends the streams, and opens no further ones. */
  drain(): void;
  /**
   * Another process has all receipts: ends the streams, opens no further ones, and reports no
   * receipt as missing. Long polls stay, because this process learns their ends.
   */
  retire(): void;
  readonly counters: ReceiptEndpointCounters;
}

export interface ReceiptEndpointCounters {
  readonly reads: Readonly<ReadLimit["counters"]>;
  readonly longPolls: Readonly<LongPollCounters>;
  readonly streams: Readonly<StreamCounters>;
}

export function createReceiptEndpoints(deps: ReceiptEndpointsDeps): ReceiptEndpoints {
  const { clock, access, receipts, flushEvents = (): void => {} } = deps;
  const reads = createReadLimit();
  const longPolls = createLongPolls({ clock, receipts });
  const streams = createStreams({ clock, receipts, flushEvents });
  let draining = false;
  let retiring = false;

  /** The principal and the query, once both are valid and the limit allows the request. */
  function checkRequest<Query>(
    context: RequestContext,
    { token }: ReceiptRequest,
    read: () => Read<Query>,
  ): { readonly principal: Principal; readonly query: Query } | null {
    const principal = access.authenticate(token, context);
    if (principal === null) {
      context.reject(access.rejectionOf(token, context));
      return null;
    }
    const wait = reads.charge(principal, clock.nowNs());
    if (wait > 0) {
      const { plan } = principal;
      const extras = { ...NO_EXTRAS, retryAfterSeconds: retryAfterSeconds(wait), plan };
      context.reject(readLimitRejection(plan, wait), extras);
      return null;
    }
    const parsed = read();
    if (parsed.kind === "query") return { principal, query: parsed.query };
    context.reject(parsed.rejection);
    return null;
  }

  function respondOne(context: RequestContext, signature: string, account: string): void {
    flushEvents();
    const receipt = receipts.find(signature, account);
    if (receipt === null) context.reject(retiring ? RETIRING : NO_RECEIPT);
    else context.send(STATUS_OK, HEADERS_DOCUMENT, JSON.stringify(receipt));
  }

  /**
   * Responds once the transaction has reached the goal, or at timeout. The process that this one
   * replaces is asked first for a receipt that is missing here.
   */
  function waitFor(
    context: RequestContext,
    signature: string,
    account: string,
    query: WaitQuery,
    isCaughtUp = false,
  ): void {
    const { goal, timeoutMs } = query;
    flushEvents();
    const ticket = receipts.ticket(signature, account);
    const caughtUp = ticket === null && !isCaughtUp ? (receipts.catchUp?.() ?? null) : null;
    if (caughtUp !== null) {
      const again = (): void => {
        // A client that has disconnected meanwhile would wait until the timeout.
        if (context.open) waitFor(context, signature, account, query, true);
      };
      void caughtUp.then(again).catch((error: unknown) => context.respond500(error));
      return;
    }
    const respond = (): void => {
      try {
        respondOne(context, signature, account);
      } catch (error) {
        context.respond500(error);
      }
    };
    if (goal === null || ticket === null || receipts.reached(ticket, goal)) {
      respond();
      return;
    }
    const added = longPolls.add({ account, ticket, goal, timeoutMs, respond });
    if (typeof added === "string") context.reject(tooMany("waits for receipts", added));
    else context.onDisconnect = added.leave;
  }

  function openStream(
    context: RequestContext,
    account: string,
    ask: ReceiptRequest,
    query: StreamQuery,
  ) {
    const { token, lastEventId } = ask;
    const connection: SseConnection = {
      write: (text) => context.push(text),
      end: () => context.endStream(),
      abort: () => context.abort(),
      isKeyValid: () => access.authenticate(token, context)?.account === account,
    };
    const { states } = query;
    // Quotas are checked before the first byte of the response is written.
    const start = (): void => context.startStream(HEADERS_EVENTS, () => stream.drained());
    const opened = streams.open({ account, states, lastEventId }, connection, start);
    if (typeof opened === "string") {
      context.reject(tooMany("streams of receipts", opened));
      return;
    }
    const stream = opened;
    context.onDisconnect = stream.left;
  }

  return {
    counters: { reads: reads.counters, longPolls: longPolls.counters, streams: streams.counters },
    one(context, signature, request) {
      const checked = checkRequest(context, request, () =>
        SIGNATURE.test(signature) ? readWaitQuery(request.query) : NO_SIGNATURE,
      );
      if (checked === null) return;
      waitFor(context, signature, checked.principal.account, checked.query);
    },
    list(context, request) {
      const checked = checkRequest(context, request, () => readListQuery(request.query));
      if (checked === null) return;
      const { principal, query } = checked;
      context.sendLazy(STATUS_OK, HEADERS_DOCUMENT, () => {
        flushEvents();
        return JSON.stringify(receipts.list(principal.account, query));
      });
    },
    stream(context, request) {
      const checked = checkRequest(context, request, () => readStreamQuery(request.query));
      if (checked === null) return;
      if (draining || retiring) context.reject(retiring ? RETIRING : DRAINING);
      else if (request.headOnly) context.send(STATUS_OK, HEADERS_EVENTS, "");
      else openStream(context, checked.principal.account, request, checked.query);
    },
    drain() {
      draining = true;
      longPolls.drain();
      streams.drain();
    },
    retire() {
      retiring = true;
      streams.drain();
    },
  };
}

/** `whose` quota is exhausted: the account's own, or the total. */
function tooMany(what: string, whose: "account" | "all"): Rejection {
  if (whose === "all") {
    return {
      reason: "overloaded",
      message: `this edge has no capacity for more ${what} now; try again a little later`,
      data: {},
    };
  }
  return {
    reason: "rate_limited",
    message: `this account has reached its limit of ${what}; one of them must end first`,
    data: {},
  };
}

const NO_SIGNATURE = {
  kind: "rejected",
  rejection: {
    reason: "invalid_params",
    message: "the path ends with no signature, the first one of a transaction in base58 is needed",
    data: {},
  },
} as const;
const NO_RECEIPT: Rejection = {
  reason: "not_found",
  message: "this edge knows of no such transaction sent with this account's keys lately",
  data: {},
};
const DRAINING: Rejection = {
  reason: "overloaded",
  message: "this edge is draining and opens no stream; reconnect to reach another edge",
  data: {},
};
const RETIRING: Rejection = {
  reason: "overloaded",
  message: "this process hands over to its successor; ask again on a new connection",
  data: {},
};
