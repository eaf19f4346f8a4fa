/**
 * Sends a node no requests for as long as it asks: more requests would only prolong a rate limit.
 *
 * A node asks with `Retry-After` and a status of 429 or 503. Requests fail immediately until then,
 * so callers back off as for an unreachable node. The pause is bounded.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { ClusterCounters } from "../counters.ts";
import { RETRY_AFTER_MS_MAX } from "../limits.ts";
import type { RpcHttpClient } from "./http-client.ts";

/** An RPC client that respects the pause: during it, `post` rejects. */
export function withRetryAfter(
  { post, close }: RpcHttpClient,
  clock: Clock,
  counters: Pick<ClusterCounters, "requestsSuppressed">,
): RpcHttpClient {
  let untilNs = Number.NEGATIVE_INFINITY;
  return {
    async post(body) {
      const leftMs = (untilNs - clock.nowNs()) / NS_PER_MS;
      if (leftMs > 0) {
        counters.requestsSuppressed += 1;
        throw new Error(`the node wants to be left alone for ${Math.ceil(leftMs)} ms`);
      }
      const response = await post(body);
      const { status, retryAfterMs } = response;
      if (retryAfterMs > 0 && RETRY_AFTER_STATUSES.has(status)) {
        untilNs = clock.nowNs() + Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) * NS_PER_MS;
      }
      return response;
    },
    close,
  };
}

/** Too many requests; unavailable. RFC 6585, RFC 9110. */
const RETRY_AFTER_STATUSES: ReadonlySet<number> = new Set([429, 503]);
