import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { ed25519 } from "@noble/curves/ed25519.js";
import { describe, expect, it } from "vitest";
import type { Accepted } from "../../src/core/flow.ts";
import { createVerifier } from "../../src/decode/verify.ts";

interface Vector {
  readonly key: string;
  readonly signature: string;
  readonly message: string;
  readonly accept: boolean;
}

/** The vectors of a file, with messages decoded as `encoding`. */
function vectors(name: string, encoding: "hex" | "utf8") {
  const url = new URL(`../vectors/${name}`, import.meta.url);
  // The files are part of this repository; their README says what they hold.
  const rows = JSON.parse(readFileSync(url, "utf8")) as readonly Vector[];
  return rows.map((row) => ({
    key: Buffer.from(row.key, "hex"),
    signature: Buffer.from(row.signature, "hex"),
    message: Buffer.from(row.message, encoding),
    accept: row.accept,
  }));
}

interface Signed {
  readonly key: Uint8Array;
  readonly signature: Uint8Array;
}

/** The minimum for a verifier: signatures, then keys, then the message. */
function lay(signed: readonly Signed[], message: Uint8Array): [Uint8Array, Accepted] {
  const count = signed.length;
  const bytes = Buffer.concat([
    ...signed.map((each) => each.signature),
    ...signed.map((each) => each.key),
    message,
  ]);
  const accepted: Accepted = {
    kind: "accepted",
    version: -1,
    signatureOffset: 0,
    signatureCount: count,
    messageOffset: 96 * count,
    messageSize: message.length,
    keysOffset: 64 * count,
    blockhashOffset: 0,
    durableNonce: false,
    tipLamports: 0,
    priorityFeeLamports: 0,
  };
  return [new Uint8Array(bytes), accepted];
}

function newSigner() {
  const pair = generateKeyPairSync("ed25519");
  const key = new Uint8Array(pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32));
  return { key, sign: (message: Uint8Array) => sign(null, message, pair.privateKey) };
}

describe("the verifier decides as verify_strict does", () => {
  for (const keyCacheSize of [0, 64]) {
    it(`on every Wycheproof vector, with ${keyCacheSize} cached keys`, () => {
      const verifier = createVerifier({ keyCacheSize });
      // A transaction has 64 bytes for each signature, so other sizes cannot come up.
      const rows = vectors("ed25519-wycheproof.json", "hex");
      const whole = rows.filter((row) => row.signature.length === 64);
      for (const row of [...whole, ...whole, ...whole]) {
        expect(verifier.verify(...lay([row], row.message)) === -1).toBe(row.accept);
      }
      expect(whole.filter((row) => row.accept)).toHaveLength(88);
      expect(rows.filter((row) => row.signature.length !== 64 && row.accept)).toEqual([]);
    });

    it(`on every CCTV vector, with ${keyCacheSize} cached keys`, () => {
      const verifier = createVerifier({ keyCacheSize });
      const rows = vectors("ed25519-cctv.json", "utf8");
      for (const row of [...rows, ...rows, ...rows]) {
        expect(verifier.verify(...lay([row], row.message)) === -1).toBe(row.accept);
      }
      expect(rows.filter((row) => row.accept)).toHaveLength(43);
      expect(rows).toHaveLength(768);
    });
  }

  it("rejects a non-canonical key, and one that is not a point", () => {
    const { signature } = vectors("ed25519-wycheproof.json", "hex")[0] ?? { signature: null };
    if (signature === null) throw new Error("the file contains vectors");
    const verifier = createVerifier({ keyCacheSize: 16 });
    for (const first of [0x02, 0xed, 0xee, 0xef, 0xf0, 0xff]) {
      const key = new Uint8Array(32).fill(0xff);
      key[0] = first;
      for (const last of [0x7f, 0xff]) {
        key[31] = last;
        expect(verifier.verify(...lay([{ key, signature }], randomBytes(8)))).toBe(0);
      }
    }
  });

  it("agrees with another implementation on random signatures and their mutations", () => {
    const verifier = createVerifier({ keyCacheSize: 16 });
    const signers = Array.from({ length: 6 }, newSigner);
    let good = 0;
    for (let round = 0; round < 300; round += 1) {
      const signer = signers[round % signers.length];
      if (signer === undefined) throw new Error("there is one");
      const message = randomBytes(round);
      const parts = { key: signer.key.slice(), signature: new Uint8Array(signer.sign(message)) };
      if (round % 3 !== 0) flipBit(round % 3 === 1 ? parts.signature : parts.key);
      const expected = ed25519.verify(parts.signature, message, parts.key, { zip215: false });
      expect(verifier.verify(...lay([parts], message)) === -1).toBe(expected);
      if (expected) good += 1;
    }
    expect(good).toBe(100);
  });
});

function flipBit(bytes: Uint8Array): void {
  const bit = randomBytes(4).readUInt32LE() % (bytes.length * 8);
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
}

describe("the verifier", () => {
  it("reports the first bad signature of several", () => {
    const verifier = createVerifier({ keyCacheSize: 16 });
    const message = randomBytes(100);
    const signed = Array.from({ length: 4 }, newSigner).map(({ key, sign: signWith }) => ({
      key,
      signature: new Uint8Array(signWith(message)),
    }));
    expect(verifier.verify(...lay(signed, message))).toBe(-1);
    for (const index of [3, 1]) {
      flipBit(signed[index]?.signature ?? new Uint8Array(1));
      expect(verifier.verify(...lay(signed, message))).toBe(index);
    }
    expect(verifier.counters.verified).toBe(4 + 3 + 1);
    expect(verifier.counters.invalid).toBe(2);
  });

  it("reads bytes in shared memory and does not change them", () => {
    const verifier = createVerifier({ keyCacheSize: 16 });
    const { key, sign: signWith } = newSigner();
    const message = randomBytes(200);
    const [bytes, accepted] = lay([{ key, signature: signWith(message) }], message);
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
    shared.set(bytes);
    for (let i = 0; i < 3; i += 1) expect(verifier.verify(shared, accepted)).toBe(-1);
    const hash = (data: Uint8Array) => createHash("sha256").update(data.slice()).digest("hex");
    expect(hash(shared)).toBe(hash(bytes));
  });
});
