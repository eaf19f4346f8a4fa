import { expect, it } from "vitest";
import { RequestContext } from "../../../src/http/request-context.ts";
import { createRawHandler } from "../../../src/http/submit/raw.ts";
import type { Submission, Submit } from "../../../src/http/submit/submission.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { testPrincipal } from "../../support/principals.ts";
import { fakeResponse, trackerOn } from "../fake-response.ts";

const plan = { name: "P", ratePerSecond: 1, burst: 1, shared: false };

it("hands the bytes on with account and time, without a copy", () => {
  const clock = createFakeClock();
  const tracker = trackerOn(clock);
  const handled: Submission[] = [];
  const submit: Submit = (submission, done) => {
    handled.push(submission);
    done({ kind: "accepted", signature: "s" });
  };
  const response = fakeResponse();
  const context = new RequestContext(response, tracker, "raw");
  context.principal = testPrincipal("acme", plan);
  const bytes = Uint8Array.of(1, 2, 3);
  createRawHandler({ clock, submit, tracker }).handle(context, bytes);
  expect(handled).toEqual([
    {
      bytes,
      account: "acme",
      keyId: "0".repeat(32),
      receivedNs: clock.nowNs(),
      maxRetries: null,
      isVerified: false,
    },
  ]);
  expect(handled[0]?.bytes).toBe(bytes);
  expect(context.isQueued).toBe(false);
  expect(response.calls.at(-1)).toBe('end {"success":true,"signature":"s"}');
});

it("waits under the deadline when the answer is not there yet", () => {
  const clock = createFakeClock();
  const tracker = trackerOn(clock);
  const context = new RequestContext(fakeResponse(), tracker, "raw");
  createRawHandler({ clock, submit: () => {}, tracker }).handle(context, new Uint8Array());
  expect(context.isQueued).toBe(true);
});
