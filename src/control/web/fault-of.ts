/**
 * Every fault in the one form, whoever found it: a handler, a schema, the framework, the database.
 * What is not known is a bug: its text stays in the log.
 */

import { DatabaseError, type DatabaseErrorKind } from "../../accounts/database/database-error.ts";
import { Fault } from "../fault.ts";
import type { z } from "./schema.ts";

export function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error;
  if (!(error instanceof Error)) return bug();
  if (error instanceof DatabaseError && AWAY.has(error.kind)) {
    return new Fault(
      "unavailable",
      "the database of accounts does not answer now, try again in a moment",
    );
  }
  const status = "statusCode" in error ? error.statusCode : null;
  if (status === 413) return new Fault("too_large", "a body is at most 16 KiB");
  if (status === 415) {
    return new Fault("unsupported_media_type", "a body must be application/json");
  }
  if (status === 404) return new Fault("not_found", "there is no such path");
  const fromClient = typeof status === "number" && status >= 400 && status < 500;
  return fromClient ? new Fault("invalid_request", "the request is malformed") : bug();
}

/** The kinds of which the same request may succeed later. */
const AWAY: ReadonlySet<DatabaseErrorKind> = new Set(["unavailable", "timeout", "conflict"]);

function bug(): Fault {
  return new Fault("internal", "something went wrong here; the request may be tried again");
}

/** What a schema found, field by field. */
export function faultOfIssues(error: z.ZodError): Fault {
  const fields = error.issues.slice(0, 20).map(({ path, message }) => ({
    path: path.join("."),
    message,
  }));
  const named = fields.map(
    ({ path, message }) => `${path === "" ? "the request" : path} ${message}`,
  );
  return new Fault("invalid_request", named.join("; "), { fields });
}
