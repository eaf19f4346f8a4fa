/**
 * A request's parts as their route's schemas have let them through. An id in a path that has not
 * the form of an id is a thing that is not there.
 */

import { Fault } from "../fault.ts";
import { faultOfIssues } from "./fault-of.ts";
import type { Route } from "./route.ts";
import type { z } from "./schema.ts";
import { wording } from "./wording.ts";

export interface Unchecked {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly headers: { readonly "content-type"?: string | undefined };
}

/** @throws Fault that names every field which does not fit */
export function checked(route: Route, request: Unchecked) {
  const params = route.params.safeParse(request.params);
  if (!params.success) throw new Fault("not_found", "there is no such thing");
  const query = through(route.query, request.query);
  if (route.body === null) return { params: params.data, query, body: null };
  if (request.body === undefined || request.body === null) {
    const type = request.headers["content-type"] ?? "nothing";
    const json = /^application\/json\b/i.test(type);
    throw json
      ? new Fault("invalid_request", "the body must be a JSON object")
      : new Fault("unsupported_media_type", `a body must be application/json, is ${type}`);
  }
  return { params: params.data, query, body: through(route.body, request.body) };
}

function through(schema: z.ZodType, input: unknown): unknown {
  const result = schema.safeParse(input, { error: wording });
  if (!result.success) throw faultOfIssues(result.error);
  // The database takes every character but this one.
  if (holdsNul(result.data)) throw new Fault("invalid_request", "a text holds a NUL");
  return result.data;
}

/** Schemas are no deeper than a few fields, and neither is what they let through. */
function holdsNul(value: unknown): boolean {
  if (typeof value === "string") return value.includes("\0");
  return typeof value === "object" && value !== null && Object.values(value).some(holdsNul);
}
