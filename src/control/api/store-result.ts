/**
 * Converts store rejections to API errors. The store's message is fit for users. A record of
 * another account and a missing record both give `not_found`.
 */

import type { ControlReason } from "../../core/errors.ts";
import { ApiError } from "../api-error.ts";
import type { Result, StoreReason } from "../store/contract.ts";

const REASONS: Readonly<Record<StoreReason, ControlReason>> = {
  not_found: "not_found",
  disabled: "disabled",
  too_many: "conflict",
  plan_unknown: "invalid_request",
  invalid: "invalid_request",
  key_ended: "conflict",
  key_replaced: "conflict",
  challenge_ended: "conflict",
  signature_wrong: "invalid_request",
  key_taken: "conflict",
  not_revealable: "conflict",
  vault: "unavailable",
  last_admin: "conflict",
};

/** @throws ApiError when the store rejected the operation */
export function valueOrThrow<T>(result: Result<T>): T {
  if (result.kind === "ok") return result.value;
  throw new ApiError(REASONS[result.reason], result.detail);
}
