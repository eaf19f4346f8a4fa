import { describe, expect, it } from "vitest";
import { freshIdentity, identityOfJson, identityOfSeed } from "../../src/send/identity.ts";

const json = (seed: Uint8Array, publicKey: Uint8Array): string =>
  JSON.stringify([...seed, ...publicKey]);

describe("an identity", () => {
  it("is read from the format that solana-keygen writes", () => {
    const { seed, publicKey } = freshIdentity();
    expect(identityOfJson(json(seed, publicKey))).toEqual({ seed, publicKey });
  });

  it("has the public key of RFC 8032's first test", () => {
    const seed = Buffer.from(
      "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      "hex",
    );
    expect(Buffer.from(identityOfSeed(seed).publicKey).toString("hex")).toBe(
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    );
  });

  it("is rejected when its halves do not match, without revealing a byte of it", () => {
    const { seed } = freshIdentity();
    const other = freshIdentity().publicKey;
    expect(() => identityOfJson(json(seed, other))).toThrow("does not belong to its seed");
  });

  it.each(["", "secret 1,2,3", "{}", "[1,2,3]", JSON.stringify(new Array(64).fill(256))])(
    "is rejected when the file contains %j",
    (text) => {
      expect(() => identityOfJson(text)).toThrow(/^the identity file is not/);
    },
  );
});
