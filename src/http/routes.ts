/**
 * Routes other than submission: service description, tip accounts, receipts, health, readiness,
 * preflights, and the JSON responses for unknown paths and methods.
 */

import type { Rejection } from "../core/errors.ts";
import {
  createReceiptEndpoints,
  type ReceiptEndpointCounters,
  type ReceiptEndpointsDeps,
  type ReceiptRequest,
} from "./receipts/endpoints.ts";
import type { RequestContext } from "./request-context.ts";
import {
  HEADERS_DOCUMENT,
  HEADERS_TEXT,
  NO_EXTRAS,
  STATUS_OK,
  STATUS_UNAVAILABLE,
} from "./response.ts";

export const RPC_PATH = "/api/v1/sendTransaction";
export const RAW_PATH = "/api/v1/sendRawTransaction";
const PING_PATH = "/ping";
const READY_PATH = "/readyz";
export const ROOT_PATH = "/";
/** Another path of JSON-RPC, where clients of other senders post it. */
export const FAST_PATH = "/fast";
const TIP_PATH = "/api/v1/tip";
const LIST_PATH = "/api/v1/transactions";
const RECEIPTS_PREFIX = `${LIST_PATH}/`;
const STREAM_PATH = "/api/v1/receipts";

export interface RoutesDeps extends ReceiptEndpointsDeps {
  readonly tip: { readonly accounts: readonly string[]; readonly lamportsMin: number };
  /** What `/readyz` and `getHealth` answer; absent: always ready. */
  readonly health?: Health;
}

export interface Health {
  /** The names of the checks that keep this edge from accepting transactions; none: it is ready. */
  failing(): readonly string[];
  /** Whether it is about to stop; it accepts work for a while. */
  isDraining(): boolean;
}

export const ALWAYS_READY: Health = { failing: () => [], isDraining: () => false };

export interface RoutesOptions {
  readonly version: string;
  readonly region: string;
}

export interface Routes {
  /** Responds to a request that is not a submission. */
  serve(context: RequestContext, request: RouteRequest): void;
  /** Ends what would stay open: long polls and streams. */
  drain(): void;
  /** Another process has all receipts and serves: ends streams, and points to it. */
  retire(): void;
  readonly counters: ReceiptEndpointCounters;
}

export interface RouteRequest extends Omit<ReceiptRequest, "headOnly"> {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

export function createRoutes(deps: RoutesDeps, options: RoutesOptions): Routes {
  const tip = JSON.stringify({
    accounts: deps.tip.accounts,
    lamportsMin: deps.tip.lamportsMin,
  });
  const root = JSON.stringify({
    service: "touchdown",
    description: "Solana transaction landing service",
    version: options.version,
    region: options.region,
    endpoints: {
      sendTransaction: `POST ${RPC_PATH}`,
      sendRawTransaction: `POST ${RAW_PATH}`,
      transaction: `GET ${RECEIPTS_PREFIX}{signature}`,
      transactions: `GET ${LIST_PATH}`,
      receipts: `GET ${STREAM_PATH}`,
      tip: `GET ${TIP_PATH}`,
      ping: `GET ${PING_PATH}`,
      ready: `GET ${READY_PATH}`,
    },
  });

  const receiptEndpoints = createReceiptEndpoints(deps);
  const health = deps.health ?? ALWAYS_READY;

  function serveGet(context: RequestContext, request: RouteRequest): void {
    const { path } = request;
    const ask = { ...request, headOnly: request.method === "HEAD" };
    if (path === PING_PATH) context.send(STATUS_OK, HEADERS_TEXT, "ok");
    else if (path === READY_PATH) sendReadiness(context, health.failing());
    else if (path === ROOT_PATH) context.send(STATUS_OK, HEADERS_DOCUMENT, root);
    else if (path === TIP_PATH) context.send(STATUS_OK, HEADERS_DOCUMENT, tip);
    else if (path === LIST_PATH) receiptEndpoints.list(context, ask);
    else if (path === STREAM_PATH) receiptEndpoints.stream(context, ask);
    else receiptEndpoints.one(context, path.slice(RECEIPTS_PREFIX.length), ask);
  }

  return {
    counters: receiptEndpoints.counters,
    drain: () => receiptEndpoints.drain(),
    retire: () => receiptEndpoints.retire(),
    serve(context, request) {
      const { method, path } = request;
      if (method === "HEAD") context.withoutBody();
      if (method === "OPTIONS") {
        context.respondPreflight();
        return;
      }
      const allowed = allowedMethods(path);
      if (allowed === null) {
        context.reject(noSuchPath(path));
        return;
      }
      if (method === "GET" || method === "HEAD") {
        if (allowed.includes("GET")) {
          serveGet(context, request);
          return;
        }
      }
      context.reject(notAllowed(method, path, allowed), { ...NO_EXTRAS, allow: allowed });
    },
  };
}

/** For load balancers. What each check found is on the admin listener alone. */
function sendReadiness(context: RequestContext, failing: readonly string[]): void {
  if (failing.length === 0) context.send(STATUS_OK, HEADERS_DOCUMENT, READY);
  else {
    const text = JSON.stringify({ status: "not ready", failing });
    context.send(STATUS_UNAVAILABLE, HEADERS_DOCUMENT, text);
  }
}

const READY = '{"status":"ready"}';

/** The value of `Allow` for a path; null for an unknown path. */
function allowedMethods(path: string): string | null {
  switch (path) {
    case RPC_PATH:
    case RAW_PATH:
    case FAST_PATH:
      return "POST, OPTIONS";
    case ROOT_PATH:
      return "GET, HEAD, POST, OPTIONS";
    case PING_PATH:
    case READY_PATH:
    case TIP_PATH:
    case LIST_PATH:
    case STREAM_PATH:
      return "GET, HEAD, OPTIONS";
    default:
      return path.startsWith(RECEIPTS_PREFIX) ? "GET, HEAD, OPTIONS" : null;
  }
}

function noSuchPath(path: string): Rejection {
  const shown = path.slice(0, PATH_CHARS_MAX);
  return {
    reason: "not_found",
    message: `there is nothing at ${shown}; ${SENT_TO}`,
    data: {},
  };
}

function notAllowed(method: string, path: string, allowed: string): Rejection {
  const shown = path.slice(0, PATH_CHARS_MAX);
  const given = method.slice(0, METHOD_CHARS_MAX);
  const found = `${shown} does not accept ${given}, it accepts ${allowed}`;
  return {
    reason: "method_not_allowed",
    // Other services accept transactions at a path that is a list here.
    message: method === "POST" ? `${found}; ${SENT_TO}` : found,
    data: {},
  };
}

const SENT_TO = `transactions go to ${RPC_PATH} or ${RAW_PATH}`;
const PATH_CHARS_MAX = 120;
const METHOD_CHARS_MAX = 20;
