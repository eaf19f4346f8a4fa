/**
 * Asks the edges' admin listeners, all of them at once within a bound, each for a bounded time and
 * a bounded answer. An edge that does not answer, or not what was asked for, is named, and keeps
 * nobody else from answering. So an edge of an older version, which does not know the path, is not
 * taken for one that has nothing.
 */

import type { Named } from "../config/site-types.ts";
import type { Clock } from "../core/clock.ts";
import { EDGE_RESPONSE_BYTES_MAX, EDGE_RESPONSE_MS_MAX, EDGES_QUERIED_MAX } from "./limits.ts";

export interface EdgeResponses<T> {
  /** What the edges that know something have answered. */
  readonly responses: readonly { readonly edge: string; readonly body: T }[];
  /** Names of edges that did not answer, or not in a way that can be read. */
  readonly unreachable: readonly string[];
}

export interface EdgeQuery {
  readonly path: string;
  /** In whose name. */
  readonly accountId: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** Makes what is wanted of an edge's JSON. @throws where it is something else */
export type Read<T> = (body: unknown) => T;

export interface Edges {
  readonly counters: { asked: number; failed: number };
  /** GETs what every edge has, such as a list: one without it did not answer. */
  ask<T>(asked: EdgeQuery, read: Read<T>): Promise<EdgeResponses<T>>;
  /** GETs what an edge may not have, such as a receipt: "not found" is an answer, of nothing. */
  find<T>(asked: EdgeQuery, read: Read<T>): Promise<EdgeResponses<T>>;
}

export function createEdges(clock: Clock, edges: readonly Named[]): Edges {
  const counters = { asked: 0, failed: 0 };

  async function responsesOf<T>(
    { path, accountId, query = {} }: EdgeQuery,
    read: (reply: EdgeResponse) => T | null,
  ): Promise<EdgeResponses<T>> {
    const asked = new URLSearchParams({ ...query, account: accountId });
    const responses: { readonly edge: string; readonly body: T }[] = [];
    const unreachable: string[] = [];
    const askOne = async ({ name, at }: Named): Promise<void> => {
      counters.asked += 1;
      try {
        const body = read(await fetchJson(clock, `${at}${path}?${asked}`));
        if (body !== null) responses.push({ edge: name, body });
      } catch {
        // Which edge it was is told; why is in that edge's own log and metrics.
        counters.failed += 1;
        unreachable.push(name);
      }
    };
    for (let first = 0; first < edges.length; first += EDGES_QUERIED_MAX) {
      await Promise.all(edges.slice(first, first + EDGES_QUERIED_MAX).map(askOne));
    }
    return { responses, unreachable };
  }

  return {
    counters,
    ask: (asked, read) => responsesOf(asked, (reply) => read(found(reply))),
    find: (asked, read) =>
      responsesOf(asked, (reply) => (isNothing(reply) ? null : read(found(reply)))),
  };
}

interface EdgeResponse {
  readonly status: number;
  /** Parsed. */
  readonly body: unknown;
}

/** @throws where it is no success */
function found({ status, body }: EdgeResponse): unknown {
  if (status !== 200) throw new Error(`HTTP ${status}`);
  return body;
}

/** An edge says so itself; what else stands at its address may answer 404 to everything. */
function isNothing({ status, body }: EdgeResponse): boolean {
  const named = typeof body === "object" && body !== null && "reason" in body;
  return status === 404 && named && body.reason === "not_found";
}

/** @throws where nothing comes, or no JSON */
async function fetchJson(clock: Clock, url: string): Promise<EdgeResponse> {
  const abort = new AbortController();
  const timer = clock.after(EDGE_RESPONSE_MS_MAX, () => abort.abort());
  try {
    const response = await fetch(url, { signal: abort.signal, redirect: "error" });
    return { status: response.status, body: JSON.parse(await boundedText(response)) };
  } finally {
    timer.cancel();
  }
}

async function boundedText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.byteLength;
    if (size > EDGE_RESPONSE_BYTES_MAX) throw new Error("the answer is too large");
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}
