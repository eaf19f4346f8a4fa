/**
 * What the API answers instead of what it was asked for: a reason of the one table, a sentence, and
 * the figures in it. A handler throws it, because every handler awaits the store somewhere and the
 * server answers all of them in one place; anything else that is thrown is a bug, told to the
 * client as `internal` and to the log in full.
 */

import { CONTROL_REJECTIONS, type ControlReason } from "../core/errors.ts";

export type ApiErrorFields = Readonly<
  Record<string, string | number | readonly object[] | string[]>
>;

export class ApiError extends Error {
  override readonly name = "Fault";
  readonly reason: ControlReason;
  readonly fields: ApiErrorFields;

  /** `sentence` is for a user's eyes: no secret, no full stop. */
  constructor(reason: ControlReason, message: string, fields: ApiErrorFields = {}) {
    super(message);
    this.reason = reason;
    this.fields = fields;
  }

  get status(): number {
    return CONTROL_REJECTIONS[this.reason].status;
  }
}

/** The body of every answer that is not what was asked for. */
export function errorBody({ reason, message, fields }: ApiError): object {
  return { error: { reason, message, ...fields } };
}
