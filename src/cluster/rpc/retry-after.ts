/**
 * Sends a node no requests for as long as it asks: more requests would only prolong a rate limit.
 *
 * A node asks with `Retry-After` and a status of 429 or 503. Requests fail immediately until then,
 * so callers back off as for an unreachable node. The pause is bounded.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { ClusterCounters } from "../counters.ts";
import { RETRY_AFTER_MS_MAX } from "../limits.ts";
import type { RpcHttpClient, RpcHttpResponse } from "./http-client.ts";

export interface RetryAfter {
  /** @throws Error during the pause */
  check(): void;
  /** Records the pause that a response asks for. */
  observe(response: Pick<RpcHttpResponse, "status" | "retryAfterMs">): void;
}

export function createRetryAfter(
  clock: Clock,
  counters: Pick<ClusterCounters, "requestsSuppressed">,
): RetryAfter {
  let untilNs = Number.NEGATIVE_INFINITY;
  return {
    check() {
      const leftMs = (untilNs - clock.nowNs()) / NS_PER_MS;
      if (leftMs <= 0) return;
      counters.requestsSuppressed += 1;
      throw new Error(`the node wants to be left alone for ${Math.ceil(leftMs)} ms`);
    },
    observe({ status, retryAfterMs }) {
      if (retryAfterMs <= 0 || !RETRY_AFTER_STATUSES.has(status)) return;
      untilNs = clock.nowNs() + Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) * NS_PER_MS;
    },
  };
}

/** Wraps an RPC client so that it respects the pause. */
export function withRetryAfter(
  httpClient: RpcHttpClient,
  { check, observe }: RetryAfter,
): RpcHttpClient {
  return {
    async post(body) {
      check();
      const response = await httpClient.post(body);
      observe(response);
      return response;
    },
    close: () => httpClient.close(),
  };
}

/** Too many requests; unavailable. RFC 6585, RFC 9110. */
const RETRY_AFTER_STATUSES: ReadonlySet<number> = new Set([429, 503]);
