/**
 * The binary endpoint: the body is the transaction, nothing else.
 *
 * Hot path: the bytes go on as the view that came in; one closure a request, for the answer.
 */

import type { Clock } from "../../core/clock.ts";
import type { BodyTaker, Exchange } from "../exchange.ts";
import type { Desk } from "../request-tracker.ts";
import type { Submit } from "./submission.ts";

export function createRawTaker(deps: {
  readonly clock: Clock;
  readonly submit: Submit;
  readonly desk: Desk;
}): BodyTaker {
  const { clock, submit, desk } = deps;
  return {
    take(exchange: Exchange, bytes: Uint8Array): void {
      // Of one that a front relayed it may be known.
      const receivedNs = exchange.receivedNs === 0 ? clock.nowNs() : exchange.receivedNs;
      exchange.receivedNs = receivedNs;
      const { account, keyId } = exchange.owner ?? NOBODY;
      const submission = { bytes, account, keyId, receivedNs, maxRetries: null };
      submit(submission, (answer) => exchange.settle(answer));
      if (exchange.open) desk.wait(exchange);
    },
  };
}

/** Nothing gets here without an owner. */
const NOBODY = { account: "", keyId: "" };
