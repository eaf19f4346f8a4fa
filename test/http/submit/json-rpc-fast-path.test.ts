import { describe, expect, it } from "vitest";
import { encodeBase58, encodeBase64 } from "../../../src/core/encoding.ts";
import { callReaderOf, countText } from "../../../src/http/submit/json-rpc-fast-path.ts";
import { parseBody, type RpcCall, readCall } from "../../../src/http/submit/json-rpc-parse.ts";
import { native } from "../../native/addon.ts";
import { fc } from "../../support/properties.ts";

const reader = callReaderOf(native);

/** The call that the parser reads from a body, null if it is not a single one. */
function parsed(body: Uint8Array): RpcCall | null {
  const read = parseBody(body);
  return read.kind === "single" ? readCall(read.call, read.text, -1) : null;
}

/** Compares the two readers; returns whether the native one read the call. */
function agrees(body: string | Uint8Array): boolean {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const call = reader.read(bytes);
  if (call === null) return false;
  const other = parsed(bytes);
  expect(other).toMatchObject({ kind: "send", id: call.id, maxRetries: call.maxRetries });
  if (other?.kind === "send") expect(Buffer.compare(call.bytes, other.bytes)).toBe(0);
  return true;
}

/** Sets the counts of a transaction with one signature. */
function signedOnce(bytes: Uint8Array): Uint8Array {
  bytes[0] = 1;
  bytes[65] = 1;
  return bytes;
}

const small = (size = 66): Uint8Array => signedOnce(new Uint8Array(size));

/** In base58 if the config says so. */
function usual(transaction: Uint8Array, id: unknown, config?: Readonly<Record<string, unknown>>) {
  const text =
    config?.["encoding"] === "base58" ? encodeBase58(transaction) : encodeBase64(transaction);
  const params = [text, ...(config ? [config] : [])];
  return JSON.stringify({ jsonrpc: "2.0", id, method: "sendTransaction", params });
}

describe("an id that is a count", () => {
  it("is the text of its number at every size", () => {
    for (const count of [0, 9, 999, 1e3, 1_001, 10_010, 999_999, 1e6, 1_000_001, 123_456_789]) {
      expect(countText(count)).toBe(String(count));
    }
    for (const count of [999_999_999, 1e9, 2 ** 53 - 1])
      expect(countText(count)).toBe(String(count));
    fc.assert(fc.property(fc.maxSafeNat(), (count) => countText(count) === String(count)));
    fc.assert(fc.property(fc.nat(2e9), (count) => countText(count) === String(count)));
  });
});

describe("without the native engine", () => {
  it("nothing is read", () => {
    expect(callReaderOf(null).read(Buffer.from(usual(Uint8Array.of(1), 1)))).toBeNull();
  });
});

describe.skipIf(native === null)("a call of the usual form", () => {
  const transaction = fc.uint8Array({ minLength: 66, maxLength: 4096 }).map(signedOnce);
  const id = fc.oneof(
    fc.nat(),
    fc.constant(null),
    fc.uuid(),
    fc.stringMatching(/^[A-Za-z0-9 _.:#-]{0,40}$/),
  );
  const config = fc.record(
    {
      encoding: fc.constantFrom("base64", "base58"),
      skipPreflight: fc.boolean(),
      preflightCommitment: fc.constantFrom("processed", "confirmed"),
      maxRetries: fc.nat(),
      minContextSlot: fc.nat(),
    },
    { requiredKeys: [] },
  );

  it("is read, and as the parser reads it", () => {
    fc.assert(
      fc.property(transaction, id, fc.option(config), (bytes, id, config) => {
        expect(agrees(usual(bytes, id, config ?? undefined))).toBe(true);
      }),
    );
  });

  it("is read from a view into a larger buffer", () => {
    const body = Buffer.from(usual(small(), "a"));
    const larger = Buffer.concat([Buffer.from('"x'), body, Buffer.from("}}")]);
    expect(agrees(larger.subarray(2, 2 + body.length))).toBe(true);
  });

  it("means the same after any change, where it is still read", () => {
    const change = fc.tuple(fc.nat(), fc.constantFrom("drop", "set", "twice"), fc.nat(255));
    let read = 0;
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 66, maxLength: 100 }).map(signedOnce),
        id,
        fc.option(config),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        (bytes, id, config, changes) => {
          let body = Buffer.from(usual(bytes, id, config ?? undefined));
          for (const [where, what, byte] of changes) {
            const at = where % body.length;
            const middle = { drop: [], set: [byte], twice: [body[at] ?? 0, byte] }[what];
            body = Buffer.concat([
              body.subarray(0, at),
              Buffer.from(middle),
              body.subarray(at + 1),
            ]);
          }
          if (agrees(body)) read += 1;
        },
      ),
      { numRuns: 2_000, seed: 20_261_121 },
    );
    expect(read).toBeGreaterThan(50);
  });

  it("is left to the parser in any other form", () => {
    const others = [
      "",
      "{}",
      `[${usual(small(), 1)}]`,
      usual(small(), 1.5),
      usual(small(), -1),
      usual(small(), "ü"),
      usual(small(), 1).replace(/"(AQ[^"]*)"/, '"$1",{"encoding":"base58"}'),
      usual(small(4097), 1, { encoding: "base58" }),
      usual(small(), 1, { encoding: "base58" }).replace('["', '["0'),
      usual(small(), 1, { maxRetries: null }),
      usual(small(4097), 1),
      usual(small().fill(0, 0, 1), 1),
      usual(small().fill(2, 65), 1),
      usual(small(), 1).replace("sendTransaction", "getHealth"),
      usual(small(67), 1).replace("==", "== "),
      usual(small(68), 1).replace("=", "=\n"),
      usual(small(), 1).replace("AQAA", "AQAA "),
    ];
    for (const body of others) expect(agrees(body)).toBe(false);
  });
});
