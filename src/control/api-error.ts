/**
 * The error response of the API: a reason from the reason table, a message, and the numbers in it.
 * Handlers throw it because each of them awaits the store at some point, and the server turns all
 * of them into responses in one place. Any other thrown value is a bug: the client receives
 * `internal`, the log receives the full error.
 */

import { CONTROL_REJECTIONS, type ControlReason } from "../core/errors.ts";

export type ApiErrorFields = Readonly<
  Record<string, string | number | readonly object[] | string[]>
>;

export class ApiError extends Error {
  override readonly name = "Fault";
  readonly reason: ControlReason;
  readonly fields: ApiErrorFields;

  /** `message` is shown to users: no secret, no full stop. */
  constructor(reason: ControlReason, message: string, fields: ApiErrorFields = {}) {
    super(message);
    this.reason = reason;
    this.fields = fields;
  }

  get status(): number {
    return CONTROL_REJECTIONS[this.reason].status;
  }
}

/** The body of every error response. */
export function errorBody({ reason, message, fields }: ApiError): object {
  return { error: { reason, message, ...fields } };
}
