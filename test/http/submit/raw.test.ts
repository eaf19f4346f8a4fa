import { expect, it } from "vitest";
import { Exchange } from "../../../src/http/exchange.ts";
import { createRawTaker } from "../../../src/http/submit/raw.ts";
import type { Submission, Submit } from "../../../src/http/submit/submission.ts";
import { deskOn, fakeWire } from "../../ingress/fake-wire.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { keyOwner } from "../../support/owners.ts";

const plan = { name: "P", ratePerSecond: 1, burst: 1, shared: false };

it("hands the bytes on with account and time, without a copy", () => {
  const clock = createFakeClock();
  const desk = deskOn(clock);
  const taken: Submission[] = [];
  const submit: Submit = (submission, done) => {
    taken.push(submission);
    done({ kind: "accepted", signature: "s" });
  };
  const wire = fakeWire();
  const exchange = new Exchange(wire, desk, "raw");
  exchange.owner = keyOwner("acme", plan);
  const bytes = Uint8Array.of(1, 2, 3);
  createRawTaker({ clock, submit, desk }).take(exchange, bytes);
  expect(taken).toEqual([
    { bytes, account: "acme", keyId: "0".repeat(32), receivedNs: clock.nowNs(), maxRetries: null },
  ]);
  expect(taken[0]?.bytes).toBe(bytes);
  expect(exchange.waiting).toBe(false);
  expect(wire.calls.at(-1)).toBe('end {"success":true,"signature":"s"}');
});

it("waits under the deadline when the answer is not there yet", () => {
  const clock = createFakeClock();
  const desk = deskOn(clock);
  const exchange = new Exchange(fakeWire(), desk, "raw");
  createRawTaker({ clock, submit: () => {}, desk }).take(exchange, new Uint8Array());
  expect(exchange.waiting).toBe(true);
});
