import { createPrivateKey, sign } from "node:crypto";
import { expect, it } from "vitest";
import { clientKeyOf } from "../../../src/accounts/keys/client-key.ts";
import { isSignedText } from "../../../src/accounts/keys/public-key.ts";

/** The example in docs/quic.md. */
const SEED = "9a0314913a4b819d644716c432f371874de808ecd387691f0f20253b7532e984";
const PUBLIC_KEY = "41130ec2e4315ce2278b9a6fb9df9385661a8fc7121cd4c95fd35d576ece7135";

it("follows from the API key as the page for clients says", () => {
  expect(Buffer.from(clientKeyOf("example-key-of-this-page")).toString("hex")).toBe(PUBLIC_KEY);
});

it("is the public key of the seed", () => {
  const key = Buffer.from(`302e020100300506032b657004220420${SEED}`, "hex");
  const signature = sign(
    null,
    Buffer.from("text"),
    createPrivateKey({ key, format: "der", type: "pkcs8" }),
  ).toString("base64");
  expect(isSignedText(clientKeyOf("example-key-of-this-page"), "text", signature)).toBe(true);
  expect(isSignedText(clientKeyOf("example-key-of-that-page"), "text", signature)).toBe(false);
});
