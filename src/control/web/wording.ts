/**
 * Messages for schema errors, for the user that filled in the field: each continues after the
 * field's name. A schema's own message has priority.
 */

import type { z } from "./schema.ts";

export const wording: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is missing" : kind(issue.expected);
    case "too_small":
      return bound(issue.origin, issue.minimum, issue.inclusive === false ? "above" : "at least");
    case "too_big":
      return bound(issue.origin, issue.maximum, issue.inclusive === false ? "below" : "at most");
    case "invalid_value":
      return `must be ${issue.values.length === 1 ? "" : "one of "}${issue.values.join(", ")}`;
    case "invalid_format":
      return issue.format === "datetime"
        ? "must be a time with its zone, such as 2030-01-31T12:00:00Z"
        : "has a form that is not taken here";
    case "unrecognized_keys":
      return `must have no field ${issue.keys.slice(0, KEYS_NAMED_MAX).join(", ")}`;
    default:
      return OTHER;
  }
};

function kind(expected: string): string {
  const name = KINDS[expected];
  return name === undefined ? OTHER : `must be ${name}`;
}

function bound(origin: string, limit: number | bigint, relation: string): string {
  const unit = UNITS[origin];
  if (unit !== undefined && relation === "at least" && limit === 1) return "must not be empty";
  return unit === undefined
    ? `must be ${relation} ${limit}`
    : `must have ${relation} ${limit} ${unit}`;
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a JSON object",
};
const OTHER = "has a value that is not taken here";
const UNITS: Readonly<Record<string, string>> = { string: "characters", array: "entries" };
const KEYS_NAMED_MAX = 5;
