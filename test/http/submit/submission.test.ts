import { describe, expect, it } from "vitest";
import { submissionOf } from "../../../src/http/submit/submission.ts";

describe("a submission", () => {
  it("is for the account, the key and the plan of the request", () => {
    const bytes = Uint8Array.from([1, 2]);
    const plan = { name: "Pro", ratePerSecond: 1, burst: 1, shared: false };
    const principal = { account: "acme", keyId: "k", plan, policy: null };
    expect(submissionOf({ principal, receivedNs: 7 }, bytes, 3)).toEqual({
      bytes,
      account: "acme",
      keyId: "k",
      plan: "Pro",
      receivedNs: 7,
      maxRetries: 3,
    });
  });
});
