/**
 * Parses the parts of a request with the schemas of its route. A malformed id in a path is treated
 * as not found.
 */

import { ApiError } from "../api-error.ts";
import type { Route } from "./route.ts";
import type { z } from "./schema.ts";
import { validationError } from "./to-api-error.ts";
import { wording } from "./wording.ts";

export interface RawRequest {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly headers: { readonly "content-type"?: string | undefined };
}

/** @throws ApiError that names every invalid field */
export function parseRequest(route: Route, request: RawRequest) {
  const params = route.params.safeParse(request.params);
  if (!params.success) throw new ApiError("not_found", "there is no such thing");
  const query = parseWith(route.query, request.query);
  if (route.body === null) return { params: params.data, query, body: null };
  if (request.body === undefined || request.body === null) {
    const type = request.headers["content-type"] ?? "nothing";
    const json = /^application\/json\b/i.test(type);
    throw json
      ? new ApiError("invalid_request", "the body must be a JSON object")
      : new ApiError("unsupported_media_type", `a body must be application/json, is ${type}`);
  }
  return { params: params.data, query, body: parseWith(route.body, request.body) };
}

function parseWith(schema: z.ZodType, input: unknown): unknown {
  const result = schema.safeParse(input, { error: wording });
  if (!result.success) throw validationError(result.error);
  // The database accepts every character except this one.
  if (holdsNul(result.data)) throw new ApiError("invalid_request", "a text holds a NUL");
  return result.data;
}

/** Schemas nest only a few fields deep, and so does the data that they accept. */
function holdsNul(value: unknown): boolean {
  if (typeof value === "string") return value.includes("\0");
  return typeof value === "object" && value !== null && Object.values(value).some(holdsNul);
}
