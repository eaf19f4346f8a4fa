/**
 * Failures of the accounts database as the one error type that the rest of the code handles.
 *
 * The kind determines the reaction. The message contains neither a password nor a query value; the
 * driver's error is kept as the cause.
 */

import { messageOf } from "../../core/errors.ts";

/**
 * unavailable: no connection, or it was lost; timeout: it took too long; refused: login or
 * privileges rejected; conflict: another transaction interfered; constraint: a named schema rule
 * was violated; fault: anything else, a defect in this code.
 */
export type DatabaseErrorKind =
  | "unavailable"
  | "timeout"
  | "refused"
  | "conflict"
  | "constraint"
  | "fault";

export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  readonly kind: DatabaseErrorKind;
  /** SQLSTATE or socket error code; null for none. */
  readonly code: string | null;
  /** The violated constraint; null for none. */
  readonly constraint: string | null;

  constructor(kind: DatabaseErrorKind, message: string, code: string | null, cause: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.code = code;
    this.constraint = textOf(cause, "constraint");
  }
}

/** Converts an error of `pg` or its sockets; returns any other error unchanged. */
export function translate(error: unknown): unknown {
  if (error instanceof DatabaseError || !(error instanceof Error)) return error;
  const code = textOf(error, "code");
  const kind = kindOf(code, error.message);
  if (kind === null) return error;
  // Messages of class 22 quote the invalid value.
  const what = code?.startsWith("22") ? `a value was refused (${code})` : messageOf(error);
  return new DatabaseError(kind, `the accounts database: ${what}`, code, error);
}

function kindOf(code: string | null, message: string): DatabaseErrorKind | null {
  if (code === null) {
    if (/timeout/i.test(message)) return "timeout";
    if (/^SASL/.test(message)) return "refused";
    return /terminated|Connection ended|not queryable|pool after|SSL connection/i.test(message)
      ? "unavailable"
      : null;
  }
  const found = KINDS.find(([form]) => form.test(code));
  if (found !== undefined) return found[1];
  return SQLSTATE.test(code) ? "fault" : null;
}

function textOf(holder: unknown, field: string): string | null {
  if (typeof holder !== "object" || holder === null) return null;
  const value: unknown = Reflect.get(holder, field);
  return typeof value === "string" ? value : null;
}

/** Codes of `node:tls`: errors of certificates and of the handshake; 2026-11. */
const TLS = /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|HOSTNAME_|ERR_TLS_|ERR_SSL_)/;

/** SQLSTATE classes (`errcodes.txt`, Postgres 18) and socket errors; 2026-11. */
const KINDS: readonly (readonly [RegExp, DatabaseErrorKind])[] = [
  // 25006: the server is a standby since; another connection may lead to the primary.
  [/^(?:08...|57P0[1-4]|53300|57000|25006)$/, "unavailable"],
  [/^E(?:CONN|PIPE|HOST|NET|NOTFOUND|AI_|NOENT|ACCES|PERM|ADDR|PROTO)/, "unavailable"],
  [TLS, "unavailable"],
  [/^(?:57014|25P03|55P03|ETIMEDOUT)$/, "timeout"],
  [/^(?:28...|42501|3D000)$/, "refused"],
  [/^40(?:001|P01)$/, "conflict"],
  [/^23...$/, "constraint"],
];
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** After these errors the connection may be unusable. */
export const BROKEN: ReadonlySet<DatabaseErrorKind> = new Set(["unavailable", "timeout"]);
