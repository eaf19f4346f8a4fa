import { describe, expect, it } from "vitest";
import type { ClusterClient } from "../../src/cluster/cluster-client.ts";
import { configFromValues } from "../../src/config/load.ts";
import type { FinalState } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { buildLanding } from "../../src/edge/landing.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { DECODER, newPacket } from "../support/packets.ts";
import { newKeypair } from "../support/transactions.ts";

describe("landing, connected to an edge", () => {
  it("requests statuses by signature, and reports processing and the end to receipts", async () => {
    const clock = createFakeClock();
    const asked: Uint8Array[] = [];
    const calls: unknown[] = [];
    let isConfirmed = false;
    let slot = 70;
    const fetchStatuses: ClusterClient["fetchStatuses"] = async (signatures) => {
      asked.push(signatures);
      return { slot: 77, statuses: [{ slot: 71, confirmed: isConfirmed, error: null }] };
    };
    const landing = buildLanding(configOf(), {
      clock,
      log: { info() {}, warn() {}, error() {} },
      cluster: {
        blockHeight: () => 10,
        blockHeightNs: () => 0,
        lastValidHeight: () => null,
        fetchStatuses,
        checkBlockhashes: async () => [],
        statusReporting: () => "yes",
        contentOf: () => "unknown",
      },
      router: { currentSlot: () => slot, leaderAt: (slot) => `leader of ${slot}` },
      leaderStats: { landed: (identity) => void calls.push(identity) },
      resender: { roomFor: () => "none", resend: () => 0 },
      deliveryGate: { renew: () => true, forget() {} },
      receipts: {
        end: (end: FinalState) => void calls.push(end.kind, end.slotDelta),
        processed: ({ slot }) => void calls.push(slot),
        rolledBack: () => void calls.push("vanished"),
      },
      flushEvents: () => void calls.push("events read"),
      shares: {
        shareOf: () => 1,
        ended: (account, { kind }) => void calls.push(`share of ${account}: ${kind}`),
      },
      usage: { ended: ({ kind }) => void calls.push(`counted ${kind}`) },
    });
    landing.start();
    const packet = newPacket(1);
    const validation = createDecoder(DECODER).decode(packet.bytes);
    if (validation.kind !== "accepted") throw new Error("the packet should be accepted");
    const seen = { slot: 71, confirmed: false, error: null };
    landing.seen(packet.bytes.subarray(1, 65), seen);
    expect(calls.splice(0)).toEqual(["events read"]);
    landing.track(packet, validation, clock.nowNs(), "Beta");
    for (const confirmed of [false, true]) {
      isConfirmed = confirmed;
      clock.advance(500);
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
    }
    expect(Buffer.from(asked[0] ?? [])).toEqual(Buffer.from(packet.bytes.subarray(1, 65)));
    expect(calls).toEqual([
      71,
      `share of ${packet.account}: landed`,
      "landed",
      1,
      "leader of 71",
      "counted landed",
    ]);
    // Posted again 10 slots later: it lands once more, but not by a delivery of this edge.
    slot = 81;
    landing.track({ ...packet, id: 2 }, validation, clock.nowNs(), "Beta");
    clock.advance(500);
    for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
    expect(calls.slice(6)).toEqual(["landed", null, "counted landed"]);
    landing.stop();
  });
});

function configOf() {
  return configFromValues(
    {
      tip: { accounts: [newKeypair(3).address] },
      accounts: { keys_file: "keys.toml" },
      landing: { poll: "450ms" },
    },
    import.meta.dirname,
  );
}
