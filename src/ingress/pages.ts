/**
 * Everything but submission: what this is, the tip accounts, receipts, health, preflights, and the
 * JSON answers for unknown paths and methods. Reading a receipt needs a key but is not charged,
 * since whoever has just sent a transaction asks several times.
 */

import type { Refusal } from "../core/errors.ts";
import type { Exchange } from "./exchange.ts";
import type { Gate } from "./gate.ts";
import { HEADERS_DOCUMENT, HEADERS_TEXT, NO_EXTRAS, STATUS_OK } from "./reply.ts";

export const RPC_PATH = "/api/v1/sendTransaction";
export const RAW_PATH = "/api/v1/sendRawTransaction";
const PING_PATH = "/ping";
const ROOT_PATH = "/";
const TIP_PATH = "/api/v1/tip";
const RECEIPTS_PREFIX = "/api/v1/transactions/";

export interface PagesDeps {
  readonly gate: Gate;
  readonly receipts: {
    /** What became of a transaction that this account sent; null when there is no such. */
    find(signature: string, account: string): object | null;
  };
  readonly tip: { readonly accounts: readonly string[]; readonly lamportsMin: number };
}

export interface PagesOptions {
  readonly version: string;
  readonly region: string;
}

export interface Pages {
  /** Answers a request that is not a submission. `token` is "" when no key was sent. */
  serve(exchange: Exchange, method: string, path: string, token: string): void;
}

export function createPages(deps: PagesDeps, options: PagesOptions): Pages {
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
      tip: `GET ${TIP_PATH}`,
      ping: `GET ${PING_PATH}`,
    },
  });

  function serveReceipt(exchange: Exchange, signature: string, token: string): void {
    const owner = deps.gate.find(token, exchange);
    if (owner === null) {
      exchange.refuse(deps.gate.refusalOf(token, exchange));
      return;
    }
    if (!SIGNATURE.test(signature)) {
      exchange.refuse(NO_SIGNATURE);
      return;
    }
    const receipt = deps.receipts.find(signature, owner.account);
    if (receipt === null) {
      exchange.refuse(NO_RECEIPT);
      return;
    }
    exchange.send(STATUS_OK, HEADERS_DOCUMENT, JSON.stringify(receipt));
  }

  function serveGet(exchange: Exchange, path: string, token: string): void {
    if (path === PING_PATH) exchange.send(STATUS_OK, HEADERS_TEXT, "ok");
    else if (path === ROOT_PATH) exchange.send(STATUS_OK, HEADERS_DOCUMENT, root);
    else if (path === TIP_PATH) exchange.send(STATUS_OK, HEADERS_DOCUMENT, tip);
    else serveReceipt(exchange, path.slice(RECEIPTS_PREFIX.length), token);
  }

  return {
    serve(exchange, method, path, token) {
      if (method === "HEAD") exchange.withoutBody();
      if (method === "OPTIONS") {
        exchange.permit();
        return;
      }
      const allowed = allowedMethods(path);
      if (allowed === null) {
        exchange.refuse(noSuchPath(path));
        return;
      }
      if (method === "GET" || method === "HEAD") {
        if (allowed.includes("GET")) {
          serveGet(exchange, path, token);
          return;
        }
      }
      exchange.refuse(notAllowed(method, path, allowed), { ...NO_EXTRAS, allow: allowed });
    },
  };
}

/** The value of `Allow` for a path, null where there is nothing. */
function allowedMethods(path: string): string | null {
  switch (path) {
    case RPC_PATH:
    case RAW_PATH:
      return "POST, OPTIONS";
    case ROOT_PATH:
      return "GET, HEAD, POST, OPTIONS";
    case PING_PATH:
    case TIP_PATH:
      return "GET, HEAD, OPTIONS";
    default:
      return path.startsWith(RECEIPTS_PREFIX) ? "GET, HEAD, OPTIONS" : null;
  }
}

function noSuchPath(path: string): Refusal {
  const shown = path.slice(0, PATH_CHARS_MAX);
  return {
    reason: "not_found",
    sentence: `there is nothing at ${shown}; transactions go to ${RPC_PATH} or ${RAW_PATH}`,
    data: {},
  };
}

function notAllowed(method: string, path: string, allowed: string): Refusal {
  const shown = path.slice(0, PATH_CHARS_MAX);
  return {
    reason: "method_not_allowed",
    sentence: `${shown} does not take ${method.slice(0, METHOD_CHARS_MAX)}, it takes ${allowed}`,
    data: {},
  };
}

/** A signature is 64 bytes, which are 64 to 88 digits of base 58. */
const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{64,88}$/;
const NO_SIGNATURE: Refusal = {
  reason: "invalid_params",
  sentence: "the path ends with no signature, the first one of a transaction in base58 is needed",
  data: {},
};
const NO_RECEIPT: Refusal = {
  reason: "not_found",
  sentence: "this edge knows of no such transaction sent with this account's keys lately",
  data: {},
};
const PATH_CHARS_MAX = 120;
const METHOD_CHARS_MAX = 20;
