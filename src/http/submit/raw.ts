/**
 * The binary endpoint: the body is the transaction, nothing else; in base64 if it is text.
 *
 * Hot path: the received view of the bytes is passed on; one closure per request, for the response.
 */

import type { Clock } from "../../core/clock.ts";
import { decodeBase64 } from "../../core/encoding.ts";
import type { BodyHandler, RequestContext } from "../request-context.ts";
import type { RequestTracker } from "../request-tracker.ts";
import { isInBase58, startsWell } from "./json-rpc-parse.ts";
import { type Submit, submissionOf } from "./submission.ts";

export function createRawHandler(deps: {
  readonly clock: Clock;
  readonly submit: Submit;
  readonly tracker: RequestTracker;
}): BodyHandler {
  const { clock, submit, tracker } = deps;
  return {
    handle(context: RequestContext, body: Uint8Array): void {
      const bytes = context.isText ? decodedText(body) : body;
      context.receivedNs = clock.nowNs();
      submit(submissionOf(context, bytes, null), (result) => context.respond(result));
      if (context.open) tracker.enqueue(context);
    },
  };
}

/**
 * The bytes of a body in padded base64, in which line breaks are ignored. Any other body as it is:
 * raw bytes, or a text that the decoder rejects by its encoding.
 */
function decodedText(body: Uint8Array): Uint8Array {
  const received = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");
  const text = received.replaceAll(/[\r\n]/g, "");
  const bytes = decodeBase64(text);
  return bytes === null || (!startsWell(bytes) && isInBase58(text)) ? body : bytes;
}
