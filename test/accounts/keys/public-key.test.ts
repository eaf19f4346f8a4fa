import {
  address,
  compileOffchainMessageV0Envelope,
  compileOffchainMessageV1Envelope,
  offchainMessageApplicationDomain,
  offchainMessageContentRestrictedAsciiOf1232BytesMax,
} from "@solana/kit";
import { describe, expect, it } from "vitest";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import {
  type Challenge,
  challengeText,
  isSignedText,
  parsePublicKey,
  publicKeySha256,
} from "../../../src/accounts/keys/public-key.ts";
import { encodeBase58 } from "../../../src/core/encoding.ts";
import { createSigner, offchainMessage } from "../../support/signer.ts";

const signer = createSigner();
const challenge: Challenge = {
  id: "0f5e2a4c-0000-4000-8000-000000000001",
  account: "acme",
  publicKey: signer.publicKeyBytes,
  expiresAtMs: Date.UTC(2026, 10, 26, 15, 30, 0, 123),
};
const text = challengeText(challenge);
const isSigned = (signature: Uint8Array) =>
  isSignedText(signer.publicKeyBytes, text, encodeBase58(signature));

describe("a public key", () => {
  it("is 32 bytes in base58", () => {
    expect(parsePublicKey(signer.publicKey)).toEqual(signer.publicKeyBytes);
    const sizes = [31, 33].map((size) => encodeBase58(Buffer.alloc(size, 7)));
    for (const other of ["", "x", "0OIl", ...sizes]) {
      expect(parsePublicKey(other)).toBeNull();
    }
  });

  it("is no point of small order, for which anyone can sign", () => {
    const identity = Buffer.concat([Buffer.of(1), Buffer.alloc(31)]);
    expect(parsePublicKey(encodeBase58(identity))).toBeNull();
    expect(parsePublicKey("1".repeat(32))).toBeNull();
    // R is the identity and S is 0: OpenSSL verifies it for every text.
    const forged = Buffer.concat([identity, Buffer.alloc(32)]);
    expect(isSignedText(identity, text, encodeBase58(forged))).toBe(false);
  });

  it("has a digest that no API key has", () => {
    const digest = publicKeySha256(signer.publicKeyBytes);
    expect(digest).toHaveLength(32);
    expect(digest).not.toEqual(tokenSha256(signer.publicKey));
    expect(digest).not.toEqual(publicKeySha256(createSigner().publicKeyBytes));
    // The engine's test has the same value.
    expect(publicKeySha256(Buffer.alloc(32, 7)).toString("hex")).toBe(
      "5b455984f7f3d6bb649d36ce2f7748a8009c031959ec059b7a806a48d2757cbf",
    );
  });
});

describe("a challenge", () => {
  it("is one line of printable ASCII that fits a command line and a hardware wallet", () => {
    expect(text).toBe(
      `Touchdown: the public key ${signer.publicKey} may send transactions for the account acme. ` +
        "Challenge 0f5e2a4c-0000-4000-8000-000000000001, valid until 2026-11-26T15:30:00Z.",
    );
    expect(text).toMatch(/^[\x20-\x7e]{1,1212}$/);
    expect(text).not.toContain("'");
  });

  it("is signed by the bytes that `solana sign-offchain-message` signs", () => {
    expect(isSignedText(signer.publicKeyBytes, text, signer.signOffchain(text))).toBe(true);
    // The vector of the crate's own test.
    expect(Buffer.from(offchainMessage("Test Message")).toString("hex")).toBe(
      "ff736f6c616e61206f6666636861696e00000c0054657374204d657373616765",
    );
  });

  it("is signed by a wallet's signMessage, and in base64 too", () => {
    const signature = signer.sign(Buffer.from(text));
    expect(isSigned(signature)).toBe(true);
    const base64 = signature.toString("base64");
    expect(isSignedText(signer.publicKeyBytes, text, ` ${base64}\n`)).toBe(true);
  });

  it("is signed by the off-chain messages of @solana/kit, of version 0 and 1", () => {
    const requiredSignatories = [{ address: address(signer.publicKey) }];
    const zero = compileOffchainMessageV0Envelope({
      version: 0,
      applicationDomain: offchainMessageApplicationDomain("1".repeat(32)),
      content: offchainMessageContentRestrictedAsciiOf1232BytesMax(text),
      requiredSignatories,
    });
    const one = compileOffchainMessageV1Envelope({
      version: 1,
      content: text,
      requiredSignatories,
    });
    for (const { content } of [zero, one]) {
      expect(isSigned(signer.sign(Uint8Array.from(content)))).toBe(true);
    }
  });

  it("is not signed by another key, for another text, or by no signature", () => {
    const other = createSigner();
    expect(isSignedText(signer.publicKeyBytes, text, other.signOffchain(text))).toBe(false);
    for (const change of [{ account: "acme2" }, { id: "1" }, { expiresAtMs: 0 }]) {
      const changed = signer.signOffchain(challengeText({ ...challenge, ...change }));
      expect(isSignedText(signer.publicKeyBytes, text, changed)).toBe(false);
    }
    for (const none of ["", "x", "1".repeat(64), "A".repeat(88), "é", signer.publicKey]) {
      expect(isSignedText(signer.publicKeyBytes, text, none)).toBe(false);
    }
  });
});
