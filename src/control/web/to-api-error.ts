/**
 * Converts every error to an `ApiError`, whether a handler, a schema, the framework or the database
 * raised it. An unknown error is a bug: its text is only logged.
 */

import { DatabaseError, type DatabaseErrorKind } from "../../accounts/database/database-error.ts";
import { ApiError } from "../api-error.ts";
import type { z } from "./schema.ts";

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (!(error instanceof Error)) return bug();
  if (error instanceof DatabaseError && AWAY.has(error.kind)) {
    return new ApiError(
      "unavailable",
      "the database of accounts does not answer now, try again in a moment",
    );
  }
  const status = "statusCode" in error ? error.statusCode : null;
  if (status === 413) return new ApiError("too_large", "a body is at most 16 KiB");
  if (status === 415) {
    return new ApiError("unsupported_media_type", "a body must be application/json");
  }
  if (status === 404) return new ApiError("not_found", "there is no such path");
  const fromClient = typeof status === "number" && status >= 400 && status < 500;
  return fromClient ? new ApiError("invalid_request", "the request is malformed") : bug();
}

/** The reasons for which the same request may succeed later. */
const AWAY: ReadonlySet<DatabaseErrorKind> = new Set(["unavailable", "timeout", "conflict"]);

function bug(): ApiError {
  return new ApiError("internal", "something went wrong here; the request may be tried again");
}

/** The problems that a schema found, by field. */
export function validationError(error: z.ZodError): ApiError {
  const fields = error.issues.slice(0, 20).map(({ path, message }) => ({
    path: path.join("."),
    message,
  }));
  const named = fields.map(
    ({ path, message }) => `${path === "" ? "the request" : path} ${message}`,
  );
  return new ApiError("invalid_request", named.join("; "), { fields });
}
