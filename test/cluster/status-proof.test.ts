import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../src/cluster/counters.ts";
import type { StatusResponse, TxStatus } from "../../src/cluster/ports.ts";
import { RpcError } from "../../src/cluster/rpc/json-rpc.ts";
import { createStatusProof } from "../../src/cluster/status-proof.ts";
import { encodeSignature, encodeSignatures } from "../../src/core/encoding.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const LANDED: TxStatus = { slot: 990, confirmed: true, error: null };
const allNull = (slot = 1_000): StatusResponse => ({ slot, statuses: [null, null] });

function signatureOf(fill: number): string {
  return encodeSignature(new Uint8Array(64).fill(fill));
}

function setUp() {
  const clock = createFakeClock();
  const counters = new ClusterCounters();
  const lines: string[] = [];
  const requests: unknown[] = [];
  const node = {
    /** The signatures of a slot's block, or null for a slot without a block. */
    block: (_slot: number): readonly string[] | null => [1, 2, 3, 4, 5].map(signatureOf),
    status: null as TxStatus | null,
    slot: 1_000,
    busySlot: null as number | null,
  };
  const proof = createStatusProof({
    clock,
    counters,
    quietRange: node,
    onChange: () => undefined,
    log: {
      info: (_fields, text) => void lines.push(text),
      warn: (_fields, text) => void lines.push(text),
      error: () => undefined,
    },
    rpc: {
      async blockSignatures(slot) {
        requests.push(slot);
        return node.block(slot);
      },
      async statuses(signatures) {
        const encoded = encodeSignatures(signatures);
        requests.push(encoded);
        return { slot: node.slot, statuses: encoded.map(() => node.status) };
      },
    },
  });
  const flushMicrotasks = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  };
  return { clock, counters, lines, requests, node, proof, flushMicrotasks };
}

describe("status proof", () => {
  it("is unknown before the first response, and proven by one status without a probe", async () => {
    const { proof, requests, flushMicrotasks } = setUp();
    expect(proof.reporting).toBe("unknown");
    proof.onResponse({ slot: 1_000, statuses: [null, LANDED] });
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("yes");
    expect(requests).toEqual([]);
  });

  it("probes with signatures of a recent block when all statuses are null", async () => {
    const { proof, requests, node, lines, flushMicrotasks } = setUp();
    node.status = LANDED;
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("yes");
    expect(requests).toEqual([960, [1, 2, 3, 4].map(signatureOf)]);
    expect(lines).toEqual([]);
  });

  it("is disproven by null for signatures of the node's own block, and logged once", async () => {
    const { proof, clock, lines, node, flushMicrotasks } = setUp();
    for (let round = 0; round < 3; round += 1) {
      proof.onResponse(allNull());
      await flushMicrotasks();
      clock.advance(10_000);
    }
    expect(proof.reporting).toBe("no");
    expect(lines).toEqual(["the node reports no statuses: what landed cannot be learned from it"]);
    node.status = LANDED;
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("yes");
    expect(lines.at(-1)).toBe("the node reports statuses again");
  });

  it("is disproven by a method-not-found error, and by no other failure", () => {
    const { proof } = setUp();
    proof.failed(new Error("no answer in 2000 ms"));
    proof.failed(new RpcError(-32005, "getSignatureStatuses: node is behind"));
    expect(proof.reporting).toBe("unknown");
    proof.failed(new RpcError(-32601, "getSignatureStatuses: Method not found"));
    expect(proof.reporting).toBe("no");
  });

  it("probes the newest block that holds a transaction, while its status is kept", async () => {
    const { proof, requests, node, clock, flushMicrotasks } = setUp();
    node.block = (slot) => (slot === 850 ? [signatureOf(1)] : []);
    node.busySlot = 851;
    node.status = LANDED;
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(requests).toEqual([851, 850, [signatureOf(1)]]);
    expect(proof.reporting).toBe("yes");
    node.busySlot = 700;
    requests.length = 0;
    clock.advance(60_000);
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(requests[0]).toBe(960);
  });

  it("skips up to 7 slots without a block", async () => {
    const { proof, requests, node, counters, flushMicrotasks } = setUp();
    node.block = (slot) => (slot > 953 ? null : [signatureOf(1)]);
    node.status = LANDED;
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(requests).toEqual([960, 959, 958, 957, 956, 955, 954, 953, [signatureOf(1)]]);
    expect(proof.reporting).toBe("yes");
    expect(counters).toMatchObject({ statusProbes: 1, statusProbeFailures: 0 });

    const noBlocks = setUp();
    noBlocks.node.block = () => null;
    noBlocks.proof.onResponse(allNull());
    await noBlocks.flushMicrotasks();
    expect(noBlocks.requests).toHaveLength(8);
    expect(noBlocks.proof.reporting).toBe("unknown");
  });

  it("stays unknown if the node keeps no blocks or its status slot is too old", async () => {
    const { proof, node, counters, clock, flushMicrotasks } = setUp();
    node.block = () => {
      throw new RpcError(-32011, "Transaction history is not available from this node");
    };
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("unknown");
    expect(counters.statusProbeFailures).toBe(1);
    node.block = () => [signatureOf(1)];
    node.slot = 960;
    clock.advance(10_000);
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("unknown");
  });

  it("probes 10 s after the last of frequent proofs: another node may answer now", async () => {
    const { proof, clock, flushMicrotasks } = setUp();
    for (let tick = 0; tick < 20; tick += 1) {
      proof.onResponse({ slot: 1_000, statuses: [null, LANDED] });
      clock.advance(400);
    }
    clock.advance(9_000);
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("yes");
    clock.advance(1_000);
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(proof.reporting).toBe("no");
  });

  it("probes 60 s after the last of few proofs, however close together", async () => {
    const { proof, counters, clock, flushMicrotasks } = setUp();
    for (let count = 0; count < 15; count += 1) {
      proof.onResponse({ slot: 1_000, statuses: [LANDED] });
    }
    clock.advance(59_000);
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(counters.statusProbes).toBe(0);
    clock.advance(1_000);
    proof.onResponse(allNull());
    await flushMicrotasks();
    expect(counters.statusProbes).toBe(1);
  });

  it("probes at most every 10 s, and every 60 s after a proof", async () => {
    const { proof, counters, clock, node, flushMicrotasks } = setUp();
    const probesDuring = async (seconds: number): Promise<number> => {
      const before = counters.statusProbes;
      for (let second = 0; second < seconds; second += 1) {
        proof.onResponse(allNull());
        await flushMicrotasks();
        clock.advance(1_000);
      }
      return counters.statusProbes - before;
    };
    node.block = () => null;
    expect(await probesDuring(30)).toBe(3);
    proof.onResponse({ slot: 1_000, statuses: [LANDED] });
    expect(await probesDuring(60)).toBe(0);
    node.block = () => [signatureOf(1)];
    node.status = LANDED;
    expect(await probesDuring(120)).toBe(2);
  });
});
