/** The main thread's submissions in the native engine. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../src/core/decode-errors.ts";
import { encodeBase58, encodeBase64 } from "../../src/core/encoding.ts";
import type { SubmitResult } from "../../src/core/flow.ts";
import { createNativeDecoder } from "../../src/decode/native-decoder.ts";
import { OWN_NUMBERS, OWN_UNITS_MAX } from "../../src/engine/limits.ts";
import { NativeSubmit } from "../../src/engine/native-submit.ts";
import { parseBody, type RpcCall, readCall } from "../../src/http/submit/json-rpc-parse.ts";
import type { Submission } from "../../src/http/submit/submission.ts";
import {
  type NativeSubmitting,
  NO_SUBMIT_PATH,
  PANIC,
  SUBMIT_BUSY,
  SUBMIT_INVALID,
  SUBMIT_LEADERS_FULL,
  SUBMIT_NO_LEADER,
  SUBMIT_PATH_OPTIONS,
  SUBMIT_RING_FULL,
} from "../../src/native/contract.ts";
import { native as addon } from "../native/addon.ts";
import { DECODER } from "../support/packets.ts";
import { fc } from "../support/properties.ts";
import { stub } from "../support/stub.ts";

const submissionOf = (bytes: Uint8Array, over: Partial<Submission> = {}): Submission => ({
  ...{ bytes, account: "acme", keyId: "k1", plan: "Pro", receivedNs: 1_000, maxRetries: null },
  ...over,
});

/** On an engine that returns these, the last one again and again. */
function fixture(...answers: number[]) {
  const calls: unknown[][] = [];
  const said: string[] = [];
  const native: NativeSubmitting = {
    submitPathOpen: (...given) => {
      calls.push(given);
      return 77;
    },
    submitPathClose: (path) => {
      calls.push([path]);
      return 0;
    },
    submitPathRenew: (path, bytes, sinceNs, nowNs) => {
      calls.push([path, bytes, sinceNs, nowNs]);
      return answers.shift() ?? 0;
    },
    submitPathForget: (...given) => {
      calls.push(given);
      return 0;
    },
    submitPathEvicted: () => answers.shift() ?? 0,
    submit(path, body, isCall, number, _account, receivedNs, maxRetries, out) {
      calls.push([path, body, isCall, number, receivedNs, maxRetries]);
      out.set(Buffer.from("signature"));
      new DataView(out.buffer, out.byteOffset).setFloat64(88 + 8 * 2, 3, true);
      new DataView(out.buffer, out.byteOffset).setFloat64(88 + 8 * 3, 5, true);
      new DataView(out.buffer, out.byteOffset).setFloat64(88 + 8 * 4, 6, true);
      new DataView(out.buffer, out.byteOffset).setFloat64(88 + 8 * 5, ring.unread, true);
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? 0;
    },
  };
  const ring = { unread: 0 };
  const submitting = new NativeSubmit({
    native,
    events: {
      valid: () => void said.push("valid"),
      invalid: (errorCode) => void said.push(`invalid ${errorCode}`),
    },
    flushEvents: () => void said.push("flush"),
  });
  submitting.open(5, 6);
  calls.length = 0;
  const submit = (submission: Submission): SubmitResult => {
    const results: SubmitResult[] = [];
    submitting.submit(submission, (result) => results.push(result));
    const [result] = results;
    if (result === undefined || results.length > 1) throw new Error("it must answer once");
    return result;
  };
  return { submitting, submit, calls, said, ring };
}

const SIGNATURE_CHARS = "signature".length;
const BYTES = Uint8Array.of(1, 2, 3);

describe("a submission of the main thread", () => {
  it("is one call of the engine, whose signature is the answer", () => {
    const { submit, calls, said, submitting } = fixture(SIGNATURE_CHARS);
    expect(submit(submissionOf(BYTES))).toEqual({ kind: "accepted", signature: "signature" });
    submit(submissionOf(BYTES, { maxRetries: 4, account: "other" }));
    expect(calls).toEqual([
      [77, BYTES, false, 0, 1_000, -1],
      [77, BYTES, false, 1, 1_000, 4],
    ]);
    expect(said).toEqual([]);
    expect(submitting.submitterOf(0)).toEqual({ account: "acme", keyId: "k1", plan: "Pro" });
    expect(submitting.submitterOf(1).account).toBe("other");
  });

  it("that is refused says why, and leaves its number to the next one", () => {
    const { submit, calls, said, submitting } = fixture(
      ...[SUBMIT_INVALID, SUBMIT_NO_LEADER, SUBMIT_LEADERS_FULL, NO_SUBMIT_PATH],
    );
    const results = [1, 2, 3, 4].map(() => submit(submissionOf(BYTES)));
    expect(results).toMatchObject([
      { rejection: { reason: "undecodable", data: { found: 5, needed: 6 } } },
      { rejection: { reason: "no_leader" } },
      { rejection: { reason: "overloaded" } },
      { rejection: { reason: "overloaded" } },
    ]);
    expect(said).toEqual(["invalid 3", "valid", "valid"]);
    expect(calls.map(([, , , number]) => number)).toEqual([0, 0, 0, 0]);
    expect(submitting.refused).toBe(3);
    expect(DECODE_ERROR.text_base58).toBe(3);
  });

  it("is tried again, once the events are read, where the ring is full", () => {
    const { submit, calls, said } = fixture(SUBMIT_RING_FULL, SIGNATURE_CHARS);
    expect(submit(submissionOf(BYTES)).kind).toBe("accepted");
    expect([calls.length, said]).toEqual([2, ["flush"]]);
    const stuck = fixture(SUBMIT_RING_FULL);
    expect(stuck.submit(submissionOf(BYTES))).toMatchObject({
      rejection: { reason: "overloaded", message: expect.stringMatching(/fallen behind/) },
    });
    expect([stuck.calls.length, stuck.said]).toEqual([2, ["flush"]]);
  });

  it("is refused where another thread does not finish sending it", () => {
    const { submit, calls, said } = fixture(SUBMIT_BUSY);
    expect(submit(submissionOf(BYTES))).toMatchObject({
      rejection: { reason: "overloaded", message: expect.stringMatching(/another thread/) },
    });
    expect([calls.length, said]).toEqual([1, []]);
  });

  it("has the events read after the turn, and once, where some wait", async () => {
    const { submit, said, ring } = fixture(SIGNATURE_CHARS);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    ring.unread = OWN_UNITS_MAX - 1;
    submit(submissionOf(BYTES));
    await turn();
    expect(said).toEqual([]);
    for (let round = 1; round <= 2; round += 1) {
      ring.unread = OWN_UNITS_MAX;
      for (let count = 0; count < 3; count += 1) submit(submissionOf(BYTES));
      expect(said).toHaveLength(round - 1);
      await turn();
      expect(said).toEqual(new Array(round).fill("flush"));
    }
  });

  it("has a number that none of the unread records has", () => {
    const { submit, calls, submitting } = fixture(SIGNATURE_CHARS);
    for (let n = 0; n < OWN_NUMBERS; n += 1) submit(submissionOf(BYTES, { keyId: `k${n}` }));
    submit(submissionOf(BYTES, { keyId: "again" }));
    const numbers = calls.map(([, , , number]) => number);
    expect(new Set(numbers).size).toBe(OWN_NUMBERS);
    expect(submitting.submitterOf(0).keyId).toBe("again");
    expect(submitting.submitterOf(1).keyId).toBe("k1");
  });

  it("throws where the engine fails, and is refused once the path is closed", () => {
    const { submit, submitting, calls } = fixture(PANIC);
    expect(() => submit(submissionOf(BYTES))).toThrow("status -2");
    submitting.close();
    submitting.close();
    expect(calls.at(-1)).toEqual([77]);
    expect(calls.filter((given) => given.length === 1)).toHaveLength(1);
  });

  it("is known to the gate of further copies, which a closed path does not hinder", () => {
    const { submitting, calls } = fixture(1, 0, NO_SUBMIT_PATH, 7, NO_SUBMIT_PATH);
    const renewed = [1, 2, 3].map((nowNs) => submitting.renew(BYTES, 0, nowNs));
    expect(renewed).toEqual([true, false, true]);
    expect(calls[0]).toEqual([77, BYTES, 0, 1]);
    submitting.forget(BYTES, 9);
    expect(calls.at(-1)).toEqual([77, BYTES, 9]);
    expect([submitting.evicted, submitting.evicted, submitting.path]).toEqual([7, 0, 77]);
  });

  it("needs a path that the engine opens", () => {
    const native = { submitPathOpen: () => SUBMIT_PATH_OPTIONS };
    const deps = { events: { valid() {}, invalid() {} }, flushEvents() {} };
    const broken = new NativeSubmit({
      ...deps,
      native: stub<NativeSubmitting>(native),
    });
    expect(() => broken.open(1, 2)).toThrow("status -65");
  });
});

describe.skipIf(addon === null)("a JSON-RPC call of the usual form", () => {
  const ends: (() => unknown)[] = [];
  afterAll(() => {
    for (const end of ends.reverse()) end();
  });
  let submitting: NativeSubmit;
  beforeAll(() => {
    if (addon === null) throw new Error("it is skipped without the addon");
    const native = addon;
    const engine = native.engineStart(ENGINE_OPTIONS, () => {});
    const decoder = createNativeDecoder(native, { ...DECODER, keyCacheSize: 0 });
    submitting = new NativeSubmit({
      native,
      events: { valid() {}, invalid() {} },
      flushEvents() {},
    });
    submitting.open(engine, decoder.handle);
    ends.push(
      () => native.engineStop(engine, 0),
      () => decoder.close(),
      () => submitting.close(),
    );
  });

  /** The call that the parser reads from a body, null if it is not a single one. */
  function parsed(body: Uint8Array): RpcCall | null {
    const read = parseBody(body);
    return read.kind === "single" ? readCall(read.call, read.text, -1) : null;
  }

  /** Compares the engine's reading with the parser's; returns whether the engine read the call. */
  function agrees(body: string | Uint8Array): boolean {
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const answer = submitting.submitCall(submissionOf(bytes));
    if (answer === null) return false;
    const other = parsed(bytes);
    if (other?.kind !== "send") throw new Error(`the parser reads ${other?.kind}`);
    expect(other.id).toBe(answer.id);
    submitting.submit(submissionOf(other.bytes), (result) => expect(result).toEqual(answer.result));
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

const ENGINE_OPTIONS = {
  ...{ binds: ["127.0.0.1:0"], seed: new Uint8Array(32), queueMax: 64, inFlightMax: 64 },
  ...{ admissionTimeoutMs: 1_000, idleTimeoutMs: 1_000, keepAliveMs: 1_000, busyPollUs: 0 },
};
