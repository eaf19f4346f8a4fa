/**
 * The wrapper around zod: one schema per request and response serves the checks at run time, the
 * types of the handlers, and the OpenAPI document. Requests are strict: an unknown field is
 * rejected. Responses are not: a field outside the schema is dropped, so that nothing leaks by
 * accident.
 */

import { z } from "zod";

export { z };

/** Empty object: no body, query or path parameters. */
export const nothing = z.strictObject({});

/** A time in a response. */
export const time = z.string().meta({ format: "date-time" });

/** A time in a request: ISO 8601 with a zone. */
export const givenTime = z.iso.datetime({ offset: true });

/** Cursor of a list. Accepting a malformed one would return the first page again, endlessly. */
export function cursor(form: RegExp) {
  return z.string().regex(form, "must be what `next` of the page before says");
}

/** A record id in a request, in the form of the store. A malformed id names nothing. */
export const id = z.uuid().toLowerCase();

export const label = z
  .string()
  .trim()
  .min(1)
  .max(64)
  // Same rule as the store, so that no step runs for a label that the store rejects later.
  .regex(/^[^\p{Cc}\u2028\u2029]*$/u, "must be one line")
  .regex(
    /^[^\p{Cs}\u202a-\u202e\u2066-\u2069]*$/u,
    "must have no marks of direction and no half characters",
  )
  .regex(/[\p{L}\p{N}\p{P}\p{S}]/u, "must have something to see");

/** Converts the store's milliseconds to the form of responses. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}
