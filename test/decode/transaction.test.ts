import { describe, expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import { createTransactionDecoder, peekSignatureOffset } from "../../src/decode/transaction.ts";
import { fc } from "../support/properties.ts";
import { computeUnitLimit, memo, newKeypair } from "../support/transactions.ts";
import { accepted, decoder, tipAccount, tipped, validationOf } from "../support/validations.ts";

const VERSIONS = [-1, 0, 1] as const;

/** Made with @solana/kit 8.4.0: seed 7 pays 1,000,000 lamports to seed 9, blockhash 0x03 * 32. */
const GOLDEN = [
  {
    version: -1,
    base64: [
      "AZvwOvE/HnxObzOSDY8AC5nUbNAY74+eVEENpkYgNhoraqsuzP9ck7qB8zonkYzUVtPe3nM0utRY4ibrWg4CFwMB",
      "AAED6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iz9FyQ4WqDHW2T7eM1gL6HZkf3r92sTxY7XAurINen2",
      "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMB",
      "AgIAAQwCAAAAQEIPAAAAAAA=",
    ].join(""),
    signature:
      "47pyFsxwu56uMHtJ76cK3fkFP1PGpJFWZwHURkh2gBFKj5PdezZkEc8gHpqujscNozb4BH8dRA2EZpJHxFy9dNDx",
    outline: { signatureOffset: 1, messageOffset: 65, messageSize: 150 },
    offsets: { keysOffset: 69, blockhashOffset: 165 },
    priorityFeeLamports: 0,
  },
  {
    version: 0,
    base64: [
      "Ad7wg5Ux4egzgRiDlDCL+D24RpXdPo9EZnOYt3GSSRGy/feif8BywBgicfwrDkWwyonRYBHPFYMDPox2xI4Eig6A",
      "AQABA+pKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs/RckOFqgx1tk+3jNYC+h2ZH96/drE8WO1wLqyDXp",
      "9hgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMD",
      "AQICAAEMAgAAAEBCDwAAAAAAAA==",
    ].join(""),
    signature:
      "5TXGokEB1LRwCWC2ouSfAkB6uePUqg9YowxGDwEaQ6hvS3Lot3afMgSS6SV6MMP5UbBrTLc8rCnunYFtwY3udK8H",
    outline: { signatureOffset: 1, messageOffset: 65, messageSize: 152 },
    offsets: { keysOffset: 70, blockhashOffset: 166 },
    priorityFeeLamports: 0,
  },
  {
    version: 1,
    base64: [
      "gQEAAQ8AAAADAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwED6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuS",
      "Qh7qaRRG0iz9FyQ4WqDHW2T7eM1gL6HZkf3r92sTxY7XAurINen2GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
      "AAAAAAAAOTAAAAAAAADoAwAAAAABAAICDAAAAQIAAABAQg8AAAAAAADb6EozRokvHHcfcLpTe2a6i1pSBwLmw7ZE",
      "UNK4tIBPxIzK/eqniIajKDFr2ilQ6oipxEC1SGkza8Z1zSBaUAw=",
    ].join(""),
    signature:
      "1zmwKQRbShpmSxG5c28iNhYG2beHLTJ1ZiKgujLqNGrAa1VDaXcoe9Lmu1kr6e9xcmW4Hz18ebJJyXuKnHLpyBZ",
    outline: { signatureOffset: 172, messageOffset: 0, messageSize: 172 },
    offsets: { keysOffset: 42, blockhashOffset: 8 },
    priorityFeeLamports: 12_345,
  },
] as const;

describe("golden transactions", () => {
  it.each(GOLDEN)("version $version has every expected offset", (golden) => {
    const bytes = new Uint8Array(Buffer.from(golden.base64, "base64"));
    expect(decoder.decode(bytes)).toEqual({
      kind: "accepted",
      version: golden.version,
      signatureCount: 1,
      ...golden.outline,
      ...golden.offsets,
      durableNonce: false,
      tipLamports: 1_000_000,
      priorityFeeLamports: golden.priorityFeeLamports,
    });
    expect(encodeSignature(bytes, golden.outline.signatureOffset)).toBe(golden.signature);
    expect(peekSignatureOffset(bytes)).toBe(golden.outline.signatureOffset);
  });

  it.each(GOLDEN)("version $version decodes the same from the middle of a buffer", (golden) => {
    const alone = new Uint8Array(Buffer.from(golden.base64, "base64"));
    const around = Buffer.alloc(alone.length + 100, 0xee);
    around.set(alone, 37);
    const view = new Uint8Array(around.buffer, around.byteOffset + 37, alone.length);
    expect(decoder.decode(view)).toEqual(decoder.decode(alone));
    expect(decoder.decode(around.subarray(37, 37 + alone.length))).toEqual(decoder.decode(alone));
  });
});

describe("the decoder", () => {
  it("returns the same record shape, key for key, for every version", () => {
    const shapes = VERSIONS.map((version) => Object.keys(accepted(tipped({ version }).bytes)));
    expect(shapes[1]).toEqual(shapes[0]);
    expect(shapes[2]).toEqual(shapes[0]);
  });

  it("carries no state from one transaction to the next", () => {
    const { bytes } = tipped();
    const before = decoder.decode(bytes);
    for (const version of VERSIONS)
      decoder.decode(tipped({ version, config: { heapBytes: 1 } }).bytes);
    decoder.decode(new Uint8Array(300).fill(1));
    expect(decoder.decode(bytes)).toEqual(before);
    expect(validationOf(tipped({ tips: [] }).bytes)).toBe("tip_absent");
  });

  it("reports a decode error before a missing tip", () => {
    const { bytes } = tipped({ tips: [] });
    expect(validationOf(bytes)).toBe("tip_absent");
    expect(validationOf(Buffer.concat([bytes, Buffer.alloc(1)]))).toBe("trailing_bytes");
  });

  it("rejects a tip account that is not 32 bytes long at creation", () => {
    const tipAccounts = [tipAccount.publicKey.subarray(1)];
    expect(() => createTransactionDecoder({ tipAccounts, lamportsMin: 1 })).toThrow(RangeError);
  });

  it("rejects every first version byte but 0x81", () => {
    const { bytes } = tipped({ version: 1 });
    for (let first = 0x80; first <= 0xff; first += 1) {
      bytes[0] = first;
      expect(validationOf(bytes)).toBe(first === 0x81 ? "accepted" : "version_unknown");
    }
  });

  it.each(VERSIONS)("rejects every truncation of a transaction of version %i", (version) => {
    const { bytes, message } = tipped({
      version,
      instructions: [computeUnitLimit(1000), memo("hello")],
      config: { priorityFeeLamports: 1, heapBytes: 65_536 },
    });
    expect(validationOf(bytes)).toBe("accepted");
    expect(validationOf(bytes.subarray(0, 0))).toBe("empty");
    for (let size = 1; size < bytes.length; size += 1) {
      const bare = version === 1 && size === message.length;
      expect(validationOf(bytes.subarray(0, size))).toBe(bare ? "message_only" : "truncated");
    }
  });
});

describe("peekSignatureOffset", () => {
  it("finds the first signature of each version without decoding", () => {
    for (const version of VERSIONS) {
      const { bytes } = tipped({ version });
      expect(peekSignatureOffset(bytes)).toBe(accepted(bytes).signatureOffset);
    }
  });

  it("returns -1 where no signature can be", () => {
    const impossible = [
      [],
      [1],
      [0x81],
      [0, 1],
      [13, ...Array(2000).fill(0)],
      [1, ...Array(63).fill(0)],
      [0x81, 0, ...Array(200).fill(0)],
      [0x81, 13, ...Array(2000).fill(0)],
      [0x81, 1, ...Array(103).fill(0)],
      [0x80, 1, ...Array(500).fill(0)],
    ];
    for (const bytes of impossible) expect(peekSignatureOffset(Uint8Array.from(bytes))).toBe(-1);
  });

  it("stays within the bytes at the smallest valid size", () => {
    expect(peekSignatureOffset(Uint8Array.from([1, ...Array(64).fill(0)]))).toBe(1);
    expect(peekSignatureOffset(Uint8Array.from([12, ...Array(768).fill(0)]))).toBe(1);
    expect(peekSignatureOffset(Uint8Array.from([0x81, 1, ...Array(104).fill(0)]))).toBe(42);
    expect(peekSignatureOffset(Uint8Array.from([0x81, 12, ...Array(808).fill(0)]))).toBe(42);
  });
});

describe("for arbitrary bytes", () => {
  const options = { seed: 20_261_121 };

  it("returns a result and never throws", () => {
    const bytes = fc.uint8Array({ maxLength: 5000 });
    const first = fc.constantFrom(0, 1, 2, 12, 13, 0x41, 0x7b, 0x80, 0x81, 0x82, 0xff);
    fc.assert(
      fc.property(first, bytes, (byte, rest) => {
        if (rest.length > 0) rest[0] = byte;
        const validation = decoder.decode(rest);
        expect(["accepted", "rejected"]).toContain(validation.kind);
        const offset = peekSignatureOffset(rest);
        expect(offset === -1 || offset + 64 <= rest.length).toBe(true);
      }),
      { ...options, numRuns: 3000 },
    );
  });

  it("accepts transactions built by the rules, with every offset within the bytes", () => {
    const spec = fc.record({
      version: fc.constantFrom(...VERSIONS),
      lamports: fc.integer({ min: 1_000_000, max: 2 ** 40 }),
      memos: fc.array(fc.uint8Array({ maxLength: 90 }), { maxLength: 6 }),
      signers: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(spec, ({ version, lamports, memos, signers }) => {
        const more = Array.from({ length: signers }, (_, i) => newKeypair(20 + i));
        const accounts = more.map((pair, i) => {
          return { key: pair.publicKey, signer: true, writable: i % 2 === 0 };
        });
        const tips = [{ to: tipAccount.publicKey, lamports }];
        const first = { ...memo("first"), accounts };
        const built = tipped({ version, tips, instructions: [first, ...memos.map(memo)] });
        const validation = accepted(built.bytes);
        expect(validation.tipLamports).toBe(lamports);
        expect(validation.signatureCount).toBe(1 + signers);
        const { messageOffset, messageSize, keysOffset, blockhashOffset } = validation;
        const part = (start: number, size: number): Buffer =>
          Buffer.from(built.bytes.subarray(start, start + size));
        expect(part(messageOffset, messageSize).equals(built.message)).toBe(true);
        expect(part(keysOffset, 32).equals(built.payer.publicKey)).toBe(true);
        expect(part(blockhashOffset, 32).equals(built.parts.blockhash)).toBe(true);
      }),
      { ...options, numRuns: 500 },
    );
  });

  it("caps lamports above the largest exact double", () => {
    const max = Number.MAX_SAFE_INTEGER;
    for (const lamports of [2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]) {
      const { bytes } = tipped({ tips: [{ to: tipAccount.publicKey, lamports }] });
      expect(accepted(bytes).tipLamports).toBe(max);
    }
    const { bytes } = tipped({ tips: [{ to: tipAccount.publicKey, lamports: BigInt(max) - 1n }] });
    expect(accepted(bytes).tipLamports).toBe(max - 1);
  });
});
