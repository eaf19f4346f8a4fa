import { expect, it } from "vitest";
import { decodeBase64, encodeBase58, encodeBase64 } from "../../../src/core/encoding.ts";
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
      plan: "P",
      receivedNs: clock.nowNs(),
      maxRetries: null,
    },
  ]);
  expect(handled[0]?.bytes).toBe(bytes);
  expect(context.isQueued).toBe(false);
  expect(response.calls.at(-1)).toBe('end {"success":true,"signature":"s"}');
});

it("decodes a body of text, and hands on what is none in base64", () => {
  const clock = createFakeClock();
  const tracker = trackerOn(clock);
  const bytes = new Uint8Array(99).fill(1);
  const base64 = encodeBase64(bytes);
  // Its length is a multiple of four, so it could be read as base64 too.
  const base58 = Array.from({ length: 9 }, (_, i) => encodeBase58(bytes.slice(0, 90 + i))).find(
    (text) => decodeBase64(text) !== null,
  );
  const submittedFor = (text: string | Uint8Array, isText: boolean) => {
    let submitted = "";
    const submit: Submit = (submission) => {
      submitted = Buffer.from(submission.bytes).toString("latin1");
    };
    const context = new RequestContext(fakeResponse(), tracker, "raw");
    context.isText = isText;
    createRawHandler({ clock, submit, tracker }).handle(context, Buffer.from(text));
    return submitted;
  };
  const decoded = Buffer.from(bytes).toString("latin1");
  for (const end of ["", "\n", "\r\n", "\n\n"]) {
    expect(submittedFor(base64 + end, true)).toBe(decoded);
  }
  expect(submittedFor(base64, false)).toBe(base64);
  expect(submittedFor(bytes, true)).toBe(decoded);
  expect(submittedFor("", true)).toBe("");
  expect(base58).toBeDefined();
  for (const text of [base58 ?? "", base64.slice(1), `${base64} `, "no base64"]) {
    expect(submittedFor(text, true)).toBe(text);
  }
});

it("waits under the deadline when the answer is not there yet", () => {
  const clock = createFakeClock();
  const tracker = trackerOn(clock);
  const context = new RequestContext(fakeResponse(), tracker, "raw");
  createRawHandler({ clock, submit: () => {}, tracker }).handle(context, new Uint8Array());
  expect(context.isQueued).toBe(true);
});
