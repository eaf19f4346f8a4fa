/**
 * The door to zod: what a request may hold and what an answer holds, said once, for the checks at
 * run time, the types of the handlers and the OpenAPI document. Requests are strict: a field that
 * nobody asked for is refused. Answers are not: a field that the schema lacks is left out, so that
 * nothing gets out by accident.
 */

import { z } from "zod";

export { z };

/** Nothing at all: `{}` as a body, no query, no part of the path. */
export const nothing = z.strictObject({});

/** A time as it is answered. */
export const time = z.string().meta({ format: "date-time" });

/** A time as it is asked for: ISO 8601 with a zone. */
export const givenTime = z.iso.datetime({ offset: true });

/** Where a list goes on. What is of another form would show its first page again, for ever. */
export function cursor(form: RegExp) {
  return z.string().regex(form, "must be what `next` of the page before says");
}

/** An id of ours in a path. What is not of its form names nothing. */
export const id = z.uuid();

export const label = z
  .string()
  .trim()
  .min(1)
  .max(64)
  // As the store has it: what is done before a label is kept cannot be undone by its refusal.
  .regex(/^[^\p{Cc}\u2028\u2029]*$/u, "must be one line")
  .regex(
    /^[^\p{Cs}\u202a-\u202e\u2066-\u2069]*$/u,
    "must have no marks of direction and no half characters",
  )
  .regex(/[\p{L}\p{N}\p{P}\p{S}]/u, "must have something to see");

/** Milliseconds of the store as an answer has them. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}
