/**
 * Leaves a node alone for as long as it asks for: a limit that is met with more questions is a
 * limit that lasts.
 *
 * A node says so with `Retry-After` beside a status of 429 or 503. Questions fail at once until
 * then, so whoever asks waits as it does for a node that is away. How long is believed is bounded.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { ChainCounters } from "../counters.ts";
import { RETRY_AFTER_MS_MAX } from "../limits.ts";
import type { StatusAnswer } from "../target.ts";
import type { PostAnswer, Poster } from "./http-client.ts";

export interface Patience {
  /** @throws Error while the node is left alone */
  check(): void;
  /** Takes note of what an answer asks for. */
  note(answer: Pick<PostAnswer, "status" | "retryAfterMs">): void;
}

export function createPatience(
  clock: Clock,
  counters: Pick<ChainCounters, "requestsHeldBack">,
): Patience {
  let untilNs = Number.NEGATIVE_INFINITY;
  return {
    check() {
      const leftMs = (untilNs - clock.nowNs()) / NS_PER_MS;
      if (leftMs <= 0) return;
      counters.requestsHeldBack += 1;
      throw new Error(`the node wants to be left alone for ${Math.ceil(leftMs)} ms`);
    },
    note({ status, retryAfterMs }) {
      if (retryAfterMs <= 0 || !ASKING.has(status)) return;
      untilNs = clock.nowNs() + Math.min(retryAfterMs, RETRY_AFTER_MS_MAX) * NS_PER_MS;
    },
  };
}

/** The poster of a node that is left alone when it asks for that. */
export function patient(poster: Poster, { check, note }: Patience): Poster {
  async function noting<T extends PostAnswer | StatusAnswer>(ask: () => Promise<T>): Promise<T> {
    check();
    const answer = await ask();
    if ("status" in answer) note(answer);
    return answer;
  }
  const { statuses } = poster;
  return {
    post: (body) => noting(() => poster.post(body)),
    ...(statuses === undefined
      ? {}
      : { statuses: (signatures: Uint8Array) => noting(() => statuses.call(poster, signatures)) }),
    close: () => poster.close(),
  };
}

/** Too many requests; unavailable. RFC 6585, RFC 9110. */
const ASKING: ReadonlySet<number> = new Set([429, 503]);
