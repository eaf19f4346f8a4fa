import { describe, expect, it } from "vitest";
import { decodeBase64, encodeBase58, encodeBase64 } from "../../../src/core/encoding.ts";
import { FOREIGN_METHODS } from "../../../src/http/submit/json-rpc-messages.ts";
import {
  callId,
  keylessMethod,
  parseBody,
  readCall,
} from "../../../src/http/submit/json-rpc-parse.ts";
import { fc } from "../../support/properties.ts";

const bytes = (text: string) => Buffer.from(text);

const send = (encoded: string) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "sendTransaction",
  params: [encoded],
});

/** Starts like a legacy transaction with `count` signatures. */
function signed(size: number, count: number): Uint8Array {
  return new Uint8Array(size)
    .fill(7)
    .fill(count, 0, 1)
    .fill(count, 1 + 64 * count, 2 + 64 * count);
}

describe("parseBody", () => {
  it("distinguishes one call from a batch", () => {
    expect(parseBody(bytes('{"a":1}'))).toMatchObject({ kind: "single", call: { a: 1 } });
    expect(parseBody(bytes("[1,2]"))).toMatchObject({ kind: "batch", calls: [1, 2] });
  });

  it("rejects text that is not UTF-8, because its id could not be returned", () => {
    for (const id of ["ü", "\u00e9t\u00e9"]) {
      expect(parseBody(bytes(`{"id":"${id}"}`))).toMatchObject({ call: { id } });
      const latin1 = Buffer.from(`{"id":"${id}"}`, "latin1");
      expect(parseBody(latin1)).toMatchObject({ rejection: { reason: "parse_error" } });
    }
    expect(parseBody(bytes('{"id":"\\ud800"}'))).toMatchObject({ call: { id: "\ud800" } });
  });

  it("never throws, and never repeats the body in a refusal", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
        const parsed = parseBody(body);
        if (parsed.kind === "rejected") expect(parsed.rejection.message.length).toBeLessThan(100);
      }),
    );
  });
});

describe("readCall", () => {
  it("never throws for any JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (value, params, config) => {
        const calls = [
          value,
          { jsonrpc: "2.0", id: 1, method: "sendTransaction", params },
          { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: ["AAAA", config] },
          { jsonrpc: "2.0", id: value, method: "sendTransaction", params: [params, config] },
        ];
        for (const call of calls) {
          const text = JSON.stringify(call);
          const read = readCall(JSON.parse(text), text, -1);
          expect(() => JSON.parse(read.id)).not.toThrow();
          expect(() => JSON.parse(callId(call, text, -1))).not.toThrow();
        }
      }),
    );
  });

  it("ignores the options of a node and of other senders", () => {
    const config = { skipPreflight: false, preflightCommitment: "processed", minContextSlot: 7 };
    const call = { ...send("AAAA"), params: ["AAAA", { ...config, maxRetries: null }] };
    expect(readCall(call, "", -1)).toMatchObject({ kind: "send", maxRetries: null });
  });

  it("says what to use instead of the methods of other senders", () => {
    for (const [method, instead] of FOREIGN_METHODS) {
      const read = readCall({ jsonrpc: "2.0", id: 1, method }, "", -1);
      expect(read.kind === "rejected" && read.rejection).toEqual({
        reason: "method_not_found",
        message: `there is no method "${method}" here: ${instead}`,
        data: {},
      });
    }
    expect(FOREIGN_METHODS.get("sendBundle")).toContain("sendTransaction");
  });

  it("knows the methods that need no key", () => {
    for (const method of ["getHealth", "getTipAccounts", "getVersion", "rpc.discover"]) {
      const call = { jsonrpc: "2.0", id: 1, method };
      expect(readCall(call, "", -1)).toEqual({ kind: "keyless", id: "1", method });
      expect(keylessMethod(method)).toBe(method);
    }
    for (const other of ["gethealth", "sendTransaction", "__proto__", 1, null, undefined]) {
      expect(keylessMethod(other)).toBeNull();
    }
  });

  it("names a node as the place for other methods", () => {
    const call = { jsonrpc: "2.0", id: 1, method: "getLatestBlockhash" };
    const read = readCall(call, "", -1);
    expect(read.kind === "rejected" && read.rejection).toMatchObject({
      reason: "method_not_found",
      message: expect.stringMatching(/"getLatestBlockhash".*by a node of the network$/),
    });
  });

  it("hints at base58 where base64 was expected", () => {
    const call = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: ["StV1DL6CwTryKyV"] };
    const read = readCall(call, "", -1);
    expect(read.kind === "rejected" && read.rejection.message).toContain('"encoding":"base58"');
  });

  it("hints at it where the text could be read as base64 as well", () => {
    let readable = 0;
    for (let size = 200; size < 300; size += 1) {
      const encoded = encodeBase58(signed(size, 1));
      if (decodeBase64(encoded) !== null) readable += 1;
      const read = readCall(send(encoded), "", -1);
      expect(read.kind === "rejected" && read.rejection).toMatchObject({
        reason: "invalid_params",
        message: expect.stringContaining('"encoding":"base58"'),
      });
    }
    expect(readable).toBeGreaterThan(10);
  });

  it("reads base64 where it can be a transaction, and rejects what is neither encoding", () => {
    const v0 = signed(900, 12);
    v0.set([0x80, 12], 1 + 64 * 12);
    const v1 = new Uint8Array(300).fill(1).fill(0x81, 0, 1);
    for (const bytes of [signed(300, 1), signed(900, 12), v0, v1, new Uint8Array(0)]) {
      const read = readCall(send(encodeBase64(bytes)), "", -1);
      expect(read.kind === "send" && encodeBase64(read.bytes)).toBe(encodeBase64(bytes));
    }
    for (const text of ["AAAA", "////", "A".repeat(8_000)]) {
      expect(readCall(send(text), "", -1).kind).toBe("send");
    }
  });
});
