/**
 * A route of the API: one record with its schemas, its access rule and its handler. The server, the
 * checks and the OpenAPI document are built from these records, so a reachable route is always
 * described and guarded.
 *
 * Decision: docs/decisions/0038-a-dashboard-route-is-one-record.md
 */

import type { Account, Actor, ApiToken, Session } from "../store/contract.ts";
import { nothing, type z } from "./schema.ts";

/** Who may call: anyone; a session or a token; a session only; an operator's session. */
export type Access = "open" | "account" | "session" | "admin";

/** Names of the attempt limits; `attempt-limiter.ts` has their values. */
export type LimitName = "login" | "reveal" | "link" | "change";

/** The authenticated caller. */
export interface Caller {
  readonly account: Account;
  /** Null for a token. */
  readonly session: Session | null;
  readonly token: ApiToken | null;
  readonly actor: Actor;
}

export type CookieName = "session" | "login";

export interface Call<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The client's address, considering trusted proxies. */
  readonly address: string;
  readonly userAgent: string | null;
  cookie(name: CookieName): string | null;
  /** Sets a cookie with this lifetime, or deletes it. */
  setCookie(name: CookieName, value: string | null, maxAgeMs?: number): void;
}

/** A call of a route that needs authentication. */
export interface KnownCall<P, Q, B> extends Call<P, Q, B> {
  readonly caller: Caller;
}

type Shape = z.ZodType;

interface RouteParts<P extends Shape, Q extends Shape, B extends Shape, A extends Shape> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Contains `{name}` for each field of `params`, in OpenAPI notation. */
  readonly path: string;
  readonly summary: string;
  readonly params: P;
  readonly query: Q;
  /** Null for none. */
  readonly body: B | null;
  readonly response: A;
  readonly responseType: "application/json" | "text/event-stream";
  readonly status: 200 | 201;
  readonly limit: LimitName | null;
  /**
   * Whether a session needs a login younger than `control.recent_login`. Tokens are exempt: they
   * were created with such a login.
   */
  readonly recentLogin: boolean;
}

/** A route without its handler. */
export interface RouteHead extends RouteParts<Shape, Shape, Shape, Shape> {
  readonly access: Access;
}

/** A route whose types were checked at its definition. */
export interface Route extends RouteHead {
  handle(call: Call<unknown, unknown, unknown>, caller: Caller | null): Promise<unknown>;
}

interface RouteSpec<P extends Shape, Q extends Shape, B extends Shape, A extends Shape> {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly response: A;
  readonly status?: 200 | 201;
  readonly limit?: LimitName;
  /** Required for a changing route that is not open. */
  readonly recentLogin?: boolean;
}

type Head = readonly [method: RouteParts<Shape, Shape, Shape, Shape>["method"], path: string];

type Nothing = typeof nothing;

/** A route for authenticated callers. */
export function route<
  A extends Shape,
  P extends Shape = Nothing,
  Q extends Shape = Nothing,
  B extends Shape = Nothing,
>(
  head: Head,
  access: Exclude<Access, "open">,
  summary: string,
  spec: RouteSpec<P, Q, B, A>,
  handle: (call: KnownCall<z.output<P>, z.output<Q>, z.output<B>>) => Promise<z.input<A>>,
): Route {
  if (head[0] !== "GET" && spec.recentLogin === undefined) {
    throw new Error(`${head.join(" ")} does not say whether it needs a recent login`);
  }
  return erased(head, access, summary, spec, (call, caller) => {
    if (caller === null) throw new Error(`${head.join(" ")} was called without a caller`);
    return handle({ ...call, caller });
  });
}

/** A route for anyone. */
export function openRoute<
  A extends Shape,
  P extends Shape = Nothing,
  Q extends Shape = Nothing,
  B extends Shape = Nothing,
>(
  head: Head,
  summary: string,
  spec: RouteSpec<P, Q, B, A>,
  handle: (call: Call<z.output<P>, z.output<Q>, z.output<B>>) => Promise<z.input<A>>,
): Route {
  return erased(head, "open", summary, spec, handle);
}

function erased<P extends Shape, Q extends Shape, B extends Shape, A extends Shape>(
  [method, path]: Head,
  access: Access,
  summary: string,
  spec: RouteSpec<P, Q, B, A>,
  handle: (
    call: Call<z.output<P>, z.output<Q>, z.output<B>>,
    caller: Caller | null,
  ) => Promise<unknown>,
): Route {
  const takesBody = method === "POST" || method === "PATCH";
  return {
    method,
    path,
    access,
    summary,
    params: spec.params ?? nothing,
    query: spec.query ?? nothing,
    body: takesBody ? (spec.body ?? nothing) : null,
    response: spec.response,
    responseType: "application/json",
    status: spec.status ?? 200,
    limit: spec.limit ?? null,
    recentLogin: spec.recentLogin ?? false,
    // The server passes only what these schemas have accepted.
    handle: (call, caller) => handle(call as Call<z.output<P>, z.output<Q>, z.output<B>>, caller),
  };
}
