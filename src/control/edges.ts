/**
 * Queries the admin listeners of all edges in parallel, with limits on concurrency, and a timeout
 * and a size limit per edge. An edge that does not respond, or responds with something unexpected,
 * is listed by name and does not block the others. An older edge that does not know the path is
 * therefore not mistaken for one that has no data.
 */

import type { Named } from "../config/site-types.ts";
import { type Clock, withTimeout } from "../core/clock.ts";
import {
  EDGE_REQUESTS_MAX,
  EDGE_RESPONSE_BYTES_MAX,
  EDGE_RESPONSE_MS_MAX,
  EDGES_QUERIED_MAX,
} from "./limits.ts";

export interface EdgeResponses<T> {
  /** Responses of the edges that have data. */
  readonly responses: readonly { readonly edge: string; readonly body: T }[];
  /** Names of the edges that did not respond, or whose response could not be read. */
  readonly unreachable: readonly string[];
}

export interface EdgeQuery {
  readonly path: string;
  /** The account that the query is made for. */
  readonly accountId: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** Converts the edge's JSON. @throws when it has another form */
export type Read<T> = (body: unknown) => T;

export interface Edges {
  readonly counters: { asked: number; failed: number };
  /**
   * GETs a resource that every edge has, such as a list: an edge without it counts as unreachable.
   */
  ask<T>(asked: EdgeQuery, read: Read<T>): Promise<EdgeResponses<T>>;
  /**
   * GETs a resource that an edge may not have, such as a receipt: "not found" is a valid response.
   */
  find<T>(asked: EdgeQuery, read: Read<T>): Promise<EdgeResponses<T>>;
}

export function createEdges(clock: Clock, edges: readonly Named[]): Edges {
  const counters = { asked: 0, failed: 0 };
  /** Requests in progress, by the edge's address. */
  const open = new Map<string, number>();

  /** @throws when there is no response, no JSON, or too many requests to this edge */
  async function fetchFrom(at: string, pathAndQuery: string): Promise<EdgeResponse> {
    const before = open.get(at) ?? 0;
    if (before >= EDGE_REQUESTS_MAX) throw new Error("too many requests at a time");
    open.set(at, before + 1);
    counters.asked += 1;
    try {
      return await fetchJson(clock, at + pathAndQuery);
    } finally {
      open.set(at, (open.get(at) ?? 1) - 1);
    }
  }

  async function responsesOf<T>(
    { path, accountId, query = {} }: EdgeQuery,
    read: (reply: EdgeResponse) => T | null,
  ): Promise<EdgeResponses<T>> {
    const asked = new URLSearchParams({ ...query, account: accountId });
    const responses: { readonly edge: string; readonly body: T }[] = [];
    const unreachable: string[] = [];
    const askOne = async ({ name, at }: Named): Promise<void> => {
      try {
        const body = read(await fetchFrom(at, `${path}?${asked}`));
        if (body !== null) responses.push({ edge: name, body });
      } catch {
        // Only the name of the edge is returned; what that edge refused is in its own log.
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
  /** Parsed JSON. */
  readonly body: unknown;
}

/** @throws when the status is not a success */
function found({ status, body }: EdgeResponse): unknown {
  if (status !== 200) throw new Error(`HTTP ${status}`);
  return body;
}

/** An edge states this itself; another server at its address may respond 404 to every path. */
function isNothing({ status, body }: EdgeResponse): boolean {
  const named = typeof body === "object" && body !== null && "reason" in body;
  return status === 404 && named && body.reason === "not_found";
}

/** @throws when there is no response, or no JSON */
function fetchJson(clock: Clock, url: string): Promise<EdgeResponse> {
  return withTimeout(clock, EDGE_RESPONSE_MS_MAX, async (signal) => {
    const response = await fetch(url, { signal, redirect: "error" });
    return { status: response.status, body: JSON.parse(await boundedText(response)) };
  });
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
