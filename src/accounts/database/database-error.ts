/**
 * What can go wrong with the accounts database, as the one error that the rest of the code knows.
 *
 * Its kind says what to do about it. Its message holds neither a password nor a value of the
 * query; the driver's own error is kept as the cause.
 */

/**
 * unavailable: no connection, or it was lost; timeout: it took too long; refused: the login or its
 * rights; conflict: another transaction was in the way; constraint: a rule of the schema, named;
 * fault: anything else, a defect of ours.
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
  /** SQLSTATE, or the code of the socket's fault; null for none. */
  readonly code: string | null;
  /** The constraint that was broken; null for none. */
  readonly constraint: string | null;

  constructor(kind: DatabaseErrorKind, message: string, code: string | null, cause: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.code = code;
    this.constraint = textOf(cause, "constraint");
  }
}

/** An error of `pg` or of its sockets as ours; what neither threw stays what it is. */
export function translate(error: unknown): unknown {
  if (error instanceof DatabaseError || !(error instanceof Error)) return error;
  const code = textOf(error, "code");
  const kind = kindOf(code, error.message);
  if (kind === null) return error;
  // Messages of class 22 quote the value that was wrong.
  const what = code?.startsWith("22") ? `a value was refused (${code})` : error.message;
  return new DatabaseError(kind, `the accounts database: ${what}`, code, error);
}

function kindOf(code: string | null, message: string): DatabaseErrorKind | null {
  if (code === null) {
    if (/timeout/i.test(message)) return "timeout";
    return /terminated|Connection ended|not queryable|pool after/i.test(message)
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

/** SQLSTATE classes, `errcodes.txt` of Postgres 18, and errors of sockets; 2026-11. */
const KINDS: readonly (readonly [RegExp, DatabaseErrorKind])[] = [
  [/^(?:08...|57P0[1-4]|53300|57000)$/, "unavailable"],
  [/^E(?:CONN|PIPE|HOST|NET|NOTFOUND|AI_|NOENT)/, "unavailable"],
  [/^(?:57014|25P03|55P03|ETIMEDOUT)$/, "timeout"],
  [/^(?:28...|42501|3D000)$/, "refused"],
  [/^40(?:001|P01)$/, "conflict"],
  [/^23...$/, "constraint"],
];
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** After these the connection itself is in doubt. */
export const BROKEN: ReadonlySet<DatabaseErrorKind> = new Set(["unavailable", "timeout"]);
