/**
 * Asks the edges' admin listeners, all of them at once within a bound, each for a bounded time and
 * a bounded answer. An edge that does not answer is named, and keeps nobody else from answering.
 */

import type { Named } from "../config/site-kinds.ts";
import type { Clock } from "../core/clock.ts";
import {
  EDGE_ANSWER_BYTES_MAX,
  EDGE_ANSWER_MS_MAX,
  EDGES_ASKED_MAX,
} from "../core/limits-control.ts";

export interface EdgeAnswers {
  /** What the edges that know something have answered, parsed. */
  readonly answers: readonly { readonly edge: string; readonly body: unknown }[];
  /** Names of edges that did not answer, or not in a way that can be read. */
  readonly unreachable: readonly string[];
}

export interface Edges {
  readonly counters: { asked: number; failed: number };
  /**
   * GETs `path` of every edge for one account, with what else is in `query`. An edge's 404 is an
   * answer, and holds nothing.
   */
  ask(
    path: string,
    accountId: string,
    query?: Readonly<Record<string, string>>,
  ): Promise<EdgeAnswers>;
}

export function createEdges(clock: Clock, edges: readonly Named[]): Edges {
  const counters = { asked: 0, failed: 0 };
  return {
    counters,
    async ask(path, accountId, query = {}) {
      const asked = new URLSearchParams({ ...query, account: accountId });
      const answers: { readonly edge: string; readonly body: unknown }[] = [];
      const unreachable: string[] = [];
      const askOne = async ({ name, at }: Named): Promise<void> => {
        counters.asked += 1;
        try {
          const body = await answerOf(clock, `${at}${path}?${asked}`);
          if (body !== null) answers.push({ edge: name, body });
        } catch {
          // Which edge it was is told; why is in that edge's own log and metrics.
          counters.failed += 1;
          unreachable.push(name);
        }
      };
      for (let first = 0; first < edges.length; first += EDGES_ASKED_MAX) {
        await Promise.all(edges.slice(first, first + EDGES_ASKED_MAX).map(askOne));
      }
      return { answers, unreachable };
    },
  };
}

/** Null where the edge has nothing. @throws where it cannot be read */
async function answerOf(clock: Clock, url: string): Promise<unknown> {
  const abort = new AbortController();
  const timer = clock.after(EDGE_ANSWER_MS_MAX, () => abort.abort());
  try {
    const response = await fetch(url, { signal: abort.signal, redirect: "error" });
    if (response.status === 404) {
      await response.body?.cancel();
      return null;
    }
    if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
    return JSON.parse(await boundedText(response));
  } finally {
    timer.cancel();
  }
}

async function boundedText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.byteLength;
    if (size > EDGE_ANSWER_BYTES_MAX) throw new Error("the answer is too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
