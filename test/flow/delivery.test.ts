/**
 * Accepted transactions arrive unchanged, rejected ones never do, and every delivery is accounted
 * for: over real sockets on both sides, with simulated leaders.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEGACY_TRANSACTION_BYTES_MAX, V1_TRANSACTION_BYTES_MAX } from "../../src/core/limits.ts";
import {
  type EdgeResponse,
  ENGINE,
  type Flow,
  OTHER_KEY,
  startFlow,
  untilResponse,
} from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { type Family, seriesValue } from "../support/prometheus.ts";
import { fc } from "../support/properties.ts";
import { type BuiltTransaction, memo, newKeypair } from "../support/transactions.ts";
import { until } from "../support/wait.ts";

const VERSIONS = [-1, 0, 1] as const;
const sizeMax = (version: -1 | 0 | 1): number =>
  version === 1 ? V1_TRANSACTION_BYTES_MAX : LEGACY_TRANSACTION_BYTES_MAX;

/** For tests that count deliveries: nothing is resent automatically. */
const ONCE = { landing: { resends_per_second: 0 } };

/** The deliveries of a receipt, reduced to the fields that matter here. */
interface Delivery {
  readonly identity: string;
  readonly state: string;
  readonly reason: string | null;
}

function deliveriesIn(receipt: EdgeResponse): readonly Delivery[] {
  expect(receipt.status).toBe(200);
  // The receipt's own shape is tested with the module that creates it.
  return receipt.json["leaders"] as readonly Delivery[];
}

/**
 * No leader receives it twice. Near the end of a window the plan also names the next leader, so
 * there may be a delivery for each of two.
 */
function expectOncePerLeader(flow: Flow, bytes: Uint8Array, list: readonly Delivery[]): void {
  const had = flow.received.filter((it) => it.bytes.equals(bytes)).map((it) => it.leader);
  expect(had).toEqual([...new Set(had)]);
  const identities = list.map(({ identity }) => identity);
  expect(identities).toEqual([...new Set(identities)]);
}

const sentCount = (families: ReadonlyMap<string, Family>): number =>
  seriesValue(families, "touchdown_deliveries_sent_total");
const deliveryCount = (families: ReadonlyMap<string, Family>, outcome: string): number =>
  seriesValue(families, "touchdown_deliveries_ended_total", { outcome });

/** A transaction of exactly `size` bytes, or as close below as its lengths allow. */
function ofSize(flow: Flow, version: -1 | 0 | 1, size: number): BuiltTransaction {
  let fill = size;
  for (;;) {
    const filler = new Uint8Array(Math.max(0, fill)).fill(0x61);
    const built = flow.tipped({ version, instructions: [memo(filler)] });
    if (built.bytes.length <= size) return built;
    fill -= built.bytes.length - size;
  }
}

describe("bytes", () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await startFlow({ edge: ONCE });
  });
  afterAll(() => flow?.stop());

  async function arrives(built: BuiltTransaction, response: Promise<EdgeResponse>): Promise<void> {
    const { status, json } = await response;
    expect({ status, signature: json["signature"] ?? json["result"] }).toEqual({
      status: 200,
      signature: built.signature,
    });
    await until(
      `${built.bytes.length} bytes at a leader`,
      () => flow.deliveriesOf(built.bytes) > 0,
    );
  }

  for (const version of VERSIONS) {
    it(`arrive unaltered at the largest size of version ${version}, no byte more`, async () => {
      const largest = ofSize(flow, version, sizeMax(version));
      expect(largest.bytes.length).toBe(sizeMax(version));
      await arrives(largest, flow.postRaw(largest.bytes));

      const above = ofSize(flow, version, sizeMax(version) + 1);
      expect(above.bytes.length).toBe(sizeMax(version) + 1);
      expect((await flow.postRaw(above.bytes)).json).toMatchObject({ reason: "undecodable" });
      expect(flow.deliveriesOf(above.bytes)).toBe(0);
    });
  }

  it("arrive unaltered in any form, on both endpoints, in both encodings", async () => {
    const spec = fc.record({
      version: fc.constantFrom(...VERSIONS),
      lamports: fc.integer({ min: 1_000_000, max: 2 ** 40 }),
      signers: fc.integer({ min: 0, max: 3 }),
      memos: fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 3 }),
      way: fc.constantFrom("raw", "base64", "base58"),
    });
    await fc.assert(
      fc.asyncProperty(spec, async ({ version, lamports, signers, memos, way }) => {
        const payers = Array.from({ length: signers }, (_, index) => newKeypair(30 + index));
        const to = flow.sandbox.tipAccount;
        const tips = [{ to, lamports }, ...payers.map((from) => ({ to, lamports: 1, from }))];
        const unique = memo(String(flow.received.length) + process.hrtime.bigint());
        const extraInstructions = [...memos.map(memo), unique];
        const built = flow.tipped({ version, tips, extraInstructions });
        fc.pre(built.bytes.length <= sizeMax(version));
        if (way === "raw") await arrives(built, flow.postRaw(built.bytes));
        else if (way === "base64") await arrives(built, flow.postRpc([built.base64]));
        else await arrives(built, flow.postRpc([built.base58, { encoding: "base58" }]));
      }),
      { numRuns: 150 },
    );
  });

  it("never arrive when they were rejected, whatever the damage", async () => {
    const before = await untilResponse(
      "the arrival of what was sent before",
      flow.metrics,
      (families) => sentCount(families) === flow.received.length,
    );
    const sentBefore = flow.received.length;
    const damage = fc.record({
      version: fc.constantFrom(...VERSIONS),
      kind: fc.constantFrom("flip", "cut", "extend", "untipped", "unsigned"),
      place: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      bit: fc.integer({ min: 0, max: 7 }),
    });
    const damaged: Buffer[] = [];
    await fc.assert(
      fc.asyncProperty(damage, async ({ version, kind, place, bit }) => {
        const good = flow.tipped({
          version,
          ...(kind === "untipped" ? { tips: [] } : {}),
          sign: kind !== "unsigned",
        });
        let bytes = Buffer.from(good.bytes);
        const at = Math.floor(place * bytes.length);
        if (kind === "flip") bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
        else if (kind === "cut") bytes = bytes.subarray(0, at);
        else if (kind === "extend") bytes = Buffer.concat([bytes, bytes.subarray(0, 1 + at)]);
        damaged.push(bytes);
        const { status, json } = await flow.postRaw(bytes);
        expect({ status, json }).toMatchObject({
          status: 400,
          json: {
            success: false,
            reason: expect.stringMatching(/^(undecodable|tip_missing|signature_invalid)$/),
          },
        });
      }),
      { numRuns: 200 },
    );
    // The last transaction arrives; anything sent before would have arrived by then.
    const last = flow.tipped();
    await arrives(last, flow.postRaw(last.bytes));
    expect(damaged.filter((bytes) => flow.deliveriesOf(bytes) > 0)).toEqual([]);
    const after = await flow.metrics();
    const sent = sentCount(after) - sentCount(before);
    await until("its deliveries", () => flow.received.length - sentBefore === sent);
    expect(sent).toBeLessThanOrEqual(2);
  });
});

describe("a duplicate", () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await startFlow({ edge: { ...ONCE, send: { leaders: 1 } } });
  });
  afterAll(() => flow?.stop());

  it("returns the same signature, and no leader gets it twice, on any endpoint", async () => {
    const { bytes, base64, base58, signature } = flow.tipped();
    const responses = [
      await flow.postRaw(bytes),
      await flow.postRaw(bytes),
      await flow.postRpc([base64]),
      await flow.postRpc([base58, { encoding: "base58" }]),
      ...(await Promise.all(Array.from({ length: 20 }, () => flow.postRaw(bytes)))),
    ];
    for (const { status, json } of responses) {
      expect(status).toBe(200);
      expect(json["signature"] ?? json["result"]).toBe(signature);
    }
    const receipt = await untilResponse(
      "its acknowledgement",
      () => flow.receipt(signature),
      ({ json }) => json["state"] === "acknowledged",
    );
    expect(receipt.json["submissions"]).toBe(responses.length);
    expectOncePerLeader(flow, bytes, deliveriesIn(receipt));
  });

  it("reaches no leader twice when many connections send it simultaneously", async () => {
    for (let round = 0; round < 20; round += 1) {
      const { bytes, signature } = flow.tipped();
      const responses = await Promise.all(Array.from({ length: 16 }, () => flow.postRaw(bytes)));
      expect(new Set(responses.map(({ json }) => json["signature"]))).toEqual(new Set([signature]));
      const list = deliveriesIn(await flow.receipt(signature));
      expectOncePerLeader(flow, bytes, list);
      expect([1, 2]).toContain(list.length);
    }
  });
});

describe("a receipt", () => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await startFlow();
  });
  afterAll(() => flow?.stop());

  it("exists for the account that sent the transaction, and for no other", async () => {
    const { bytes, signature } = flow.tipped();
    await flow.postRaw(bytes);
    expect(await flow.receipt(signature)).toMatchObject({ status: 200, json: { signature } });
    const others = await flow.receipt(signature, OTHER_KEY);
    expect(others).toMatchObject({ status: 404, json: { reason: "not_found" } });
    const unknown = await flow.receipt(flow.tipped().signature);
    expect(others.json["error"]).toBe(unknown.json["error"]);
    expect(await flow.receipt(signature, "a-key-that-nobody-has")).toMatchObject({ status: 401 });
  });

  it("is shared by another account once that account has sent the same transaction", async () => {
    const { bytes, signature } = flow.tipped();
    await flow.postRaw(bytes);
    await flow.postRaw(bytes, OTHER_KEY);
    for (const response of [
      await flow.receipt(signature),
      await flow.receipt(signature, OTHER_KEY),
    ])
      expect(response).toMatchObject({ status: 200, json: { submissions: 2 } });
  });

  it("is not created for a rejected transaction", async () => {
    const { bytes, signature } = flow.tipped({ tips: [] });
    await flow.postRaw(bytes);
    expect(await flow.receipt(signature)).toMatchObject({ status: 404 });
  });
});

describe.each(["auto", "never", "always"])("[decode] inline = %s", (inline) => {
  let flow: Flow;
  beforeAll(async () => {
    flow = await startFlow({ edge: { decode: { inline, workers: 2 } } });
  });
  afterAll(() => flow?.stop());

  it("answers and delivers a mixed burst, and decodes as configured", async () => {
    const good = Array.from({ length: 150 }, () => flow.tipped());
    const bad = Array.from({ length: 50 }, () => flow.tipped({ tips: [] }));
    const forged = Array.from({ length: 20 }, () => flow.tipped({ sign: false }));
    const responses = (list: readonly BuiltTransaction[]) =>
      Promise.all(list.map(({ bytes }) => flow.postRaw(bytes)));
    const [accepted, untipped, unsigned] = await Promise.all([
      responses(good),
      responses(bad),
      responses(forged),
    ]);
    expect(accepted.map(({ json }) => json["signature"])).toEqual(good.map((it) => it.signature));
    for (const response of untipped) expect(response.json["reason"]).toBe("tip_missing");
    for (const response of unsigned) expect(response.json["reason"]).toBe("signature_invalid");
    await until("all of them at leaders", () =>
      good.every((it) => flow.deliveriesOf(it.bytes) > 0),
    );

    const metrics = await flow.metrics();
    const path = (name: string) => seriesValue(metrics, "touchdown_decoded_total", { path: name });
    expect(path("inline") + path("worker") + path("ingress_thread")).toBe(220);
    // Each thread of the native engine decodes what it accepts.
    if (inline === "never" && ENGINE === "portable") expect(path("inline")).toBe(0);
    if (ENGINE === "native") expect(path("worker")).toBe(0);
    if (inline === "always") expect(path("worker")).toBe(0);
    const validation = (name: string) =>
      seriesValue(metrics, "touchdown_validations_total", { result: name });
    expect(validation("accepted")).toBe(150);
  });
});

describe("conservation", () => {
  it("ends every delivery of every accepted transaction as leaders stall and leave", async () => {
    const flow = await startFlow({ edge: { ...ONCE, send: { delivery_ttl: "200ms" } } });
    try {
      const sent: BuiltTransaction[] = [];
      const responses: EdgeResponse[] = [];
      const worker = async (): Promise<void> => {
        for (let count = 0; count < 100; count += 1) {
          const built = flow.tipped();
          sent.push(built);
          responses.push(await flow.postRaw(built.bytes));
          if (sent.length === 200) flow.sandbox.leaders[0]?.setBehaviour({ reading: "stalled" });
          if (sent.length === 400) flow.sandbox.leaders[1]?.closeAll(2, "disallowed");
          if (sent.length === 600) await flow.sandbox.leaders[2]?.stop();
        }
      };
      await Promise.all(Array.from({ length: 8 }, worker));
      const accepted = responses.filter(({ status }) => status === 200);
      const refused = responses.filter(({ status }) => status !== 200);
      for (const { json } of refused) expect(["no_leader", "overloaded"]).toContain(json["reason"]);
      expect(accepted.length + refused.length).toBe(800);
      expect(accepted.length).toBeGreaterThan(200);

      const ended = (all: readonly Delivery[]) =>
        all.every(({ state }) => ["acked", "failed", "dropped"].includes(state));
      let total = 0;
      for (const { json } of accepted) {
        const receipt = await untilResponse(
          "all its deliveries to end",
          () => flow.receipt(String(json["signature"])),
          (response) => ended(deliveriesIn(response)),
        );
        const list = deliveriesIn(receipt);
        expect(list.length).toBeGreaterThan(0);
        for (const { state, reason } of list) expect(reason === null).toBe(state === "acked");
        total += list.length;
      }
      const metrics = await flow.metrics();
      const [acked, failed, dropped] = ["acked", "failed", "dropped"].map((outcome) =>
        deliveryCount(metrics, outcome),
      );
      expect((acked ?? 0) + (failed ?? 0) + (dropped ?? 0)).toBe(total);
      expect(sentCount(metrics)).toBe((acked ?? 0) + (failed ?? 0));
      const validation = seriesValue(metrics, "touchdown_validations_total", {
        result: "accepted",
      });
      expect(validation).toBe(800);
      expect(expectScrapedBalance(metrics).accepted).toBe(accepted.length);
    } finally {
      await flow.stop();
    }
  });

  it("answers everything when it stops under load, and sends what it accepted", async () => {
    for (const inline of ["auto", "never"]) {
      const flow = await startFlow({ edge: { decode: { inline, workers: 2 } } });
      const accepted: Buffer[] = [];
      const others = new Map<string, number>();
      let stopping: Promise<void> | null = null;
      const worker = async (): Promise<void> => {
        for (;;) {
          const { bytes } = flow.tipped();
          const response = await flow.postRaw(bytes).catch((error: unknown) => error);
          if (response instanceof Error) {
            // The port is closed; nothing was accepted from this client.
            others.set("connection", (others.get("connection") ?? 0) + 1);
            return;
          }
          // `postRaw` returns nothing else.
          const { status, json } = response as EdgeResponse;
          if (status !== 200) {
            const reason = String(json["reason"]);
            others.set(reason, (others.get(reason) ?? 0) + 1);
            if (stopping !== null) return;
          } else accepted.push(Buffer.from(bytes));
          if (accepted.length >= 150) stopping ??= flow.stop();
        }
      };
      await Promise.all(Array.from({ length: 32 }, worker));
      await stopping;
      expect([...others.keys()].filter((it) => !["connection", "overloaded"].includes(it))).toEqual(
        [],
      );
      const missing = accepted.filter((bytes) => flow.deliveriesOf(bytes) === 0);
      expect(missing.length).toBe(0);
    }
  });
});

describe("without a live leader", () => {
  it("rejects with no_leader and sends nothing, and recovers when leaders return", async () => {
    const flow = await startFlow({ leaderCount: 2 });
    try {
      for (const leader of flow.sandbox.leaders) await leader.stop();
      const readiness = () => flow.sandbox.edge.readiness();
      await until("not being ready", () => !readiness().ok);
      const lost = Array.from({ length: 10 }, () => flow.tipped());
      for (const { bytes, base64, signature } of lost) {
        expect(await flow.postRaw(bytes)).toMatchObject({
          status: 503,
          retryAfter: "1",
          json: { success: false, reason: "no_leader" },
        });
        expect(await flow.postRpc([base64])).toMatchObject({
          status: 503,
          json: { error: { code: -32603, data: { reason: "no_leader", retryable: true } } },
        });
        expect(await flow.receipt(signature)).toMatchObject({ status: 404 });
      }
      for (const leader of flow.sandbox.leaders) {
        // Another process may hold its port briefly.
        const start = () => leader.start().then(Boolean, () => false);
        await untilResponse("a leader that is back", start, Boolean);
      }
      await until("being ready again", () => readiness().ok);

      const { bytes } = flow.tipped();
      const good = await untilResponse(
        "being accepted",
        () => flow.postRaw(bytes),
        ({ status }) => status === 200,
      );
      expect(good.json["success"]).toBe(true);
      await until("its arrival", () => flow.deliveriesOf(bytes) > 0);
      expect(lost.filter((it) => flow.deliveriesOf(it.bytes) > 0)).toEqual([]);
    } finally {
      await flow.stop();
    }
  });
});
