import { describe, expect, it } from "vitest";
import { parseRequest } from "../../../src/control/web/parse-request.ts";
import { route } from "../../../src/control/web/route.ts";
import { givenTime, id, label, z } from "../../../src/control/web/schema.ts";
import { toApiError } from "../../../src/control/web/to-api-error.ts";

const body = z.strictObject({
  label: label.optional(),
  name: z.string().max(3).optional(),
  rate: z.int().positive().optional(),
  share: z.number().min(0).max(1).optional(),
  below: z.number().lt(5).optional(),
  shared: z.boolean().optional(),
  scope: z.enum(["read", "write"]).optional(),
  kind: z.literal("a").optional(),
  ends: givenTime.optional(),
  list: z.array(z.string()).max(2).optional(),
  inner: z.object({ x: z.string() }).optional(),
  either: z.union([z.string(), z.number()]).optional(),
  key: id.optional(),
});
const spec = { body, response: z.object({}), recentLogin: false };
const tried = route(["POST", "/x"], "account", "", spec, async () => ({}));

/** The error message for a body. */
function messageOf(sent: unknown): string {
  const headers = { "content-type": "application/json" };
  try {
    parseRequest(tried, { params: {}, query: {}, body: sent, headers });
  } catch (error) {
    return toApiError(error).message;
  }
  throw new Error("it was taken");
}

describe("a field that does not fit is described in plain words", () => {
  it.each<[unknown, string]>([
    [{ label: 7 }, "label must be a text"],
    [{ label: "" }, "label must not be empty; label must have something to see"],
    [{ label: "a\nb" }, "label must be one line"],
    [{ name: "long" }, "name must have at most 3 characters"],
    [{ rate: "5" }, "rate must be a number"],
    [{ rate: 1.5 }, "rate must be a whole number"],
    [{ rate: 0 }, "rate must be above 0"],
    [{ rate: 1e308 }, `rate must be at most ${Number.MAX_SAFE_INTEGER}`],
    [{ share: 2 }, "share must be at most 1"],
    [{ share: -1 }, "share must be at least 0"],
    [{ below: 5 }, "below must be below 5"],
    [{ shared: "yes" }, "shared must be true or false"],
    [{ scope: "all" }, "scope must be one of read, write"],
    [{ kind: "b" }, "kind must be a"],
    [{ ends: "2020-01-01" }, "ends must be a time with its zone, such as 2030-01-31T12:00:00Z"],
    [{ list: "x" }, "list must be a list"],
    [{ list: ["a", "b", "c"] }, "list must have at most 2 entries"],
    [{ list: [1] }, "list.0 must be a text"],
    [{ inner: {} }, "inner.x is missing"],
    [{ inner: 1 }, "inner must be a JSON object"],
    [{ either: true }, "either has a value that is not taken here"],
    [{ key: "x" }, "key has a form that is not taken here"],
    [{ admin: true }, "the request must have no field admin"],
    [[], "the request must be a JSON object"],
    ["x", "the request must be a JSON object"],
  ])("%j: %s", (sent, message) => {
    expect(messageOf(sent)).toBe(message);
  });
});
