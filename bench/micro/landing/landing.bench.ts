/**
 * What an in-flight transaction costs the hot path: tracking it while the table is at its limit, so
 * that each insertion evicts the oldest, and recording the outcome of a delivery. Also what
 * ordering a resend round costs the thread, with the table full.
 */

import { strict as assert } from "node:assert";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import type { Accepted, Outcome, Packet, Plan } from "../../../src/core/flow.ts";
import { createLanding } from "../../../src/landing/landing.ts";

const COUNT = 65_536;
const CALM = 1_000;
const LANDED = { slot: 5_001, confirmed: true, error: null };
const SIZES = [215, 1232] as const;

const ACCEPTED: Accepted = {
  kind: "accepted",
  version: 0,
  signatureOffset: 1,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: 150,
  keysOffset: 69,
  blockhashOffset: 165,
  durableNonce: false,
  tipLamports: 1_000_000,
  priorityFeeLamports: 0,
};

const target = (name: string) => ({ identity: `${name}${"1".repeat(40)}`, address: name, slot: 1 });

function planOf(...names: readonly string[]): Plan {
  return { slot: 1, send: names.map(target), warm: [] };
}

function sign(view: DataView, offset: number, id: number): void {
  view.setUint32(offset, Math.imul(id, 0x9e3779b1));
  view.setUint32(offset + 39, id);
}

const signature = new Uint8Array(64);
const signatureView = new DataView(signature.buffer);

function signatureOf(id: number): Uint8Array {
  sign(signatureView, 0, id);
  return signature;
}

export async function build(): Promise<Bench> {
  let ended = 0;
  const newLanding = () =>
    createLanding(
      {
        clock: systemClock,
        log: { info() {}, warn() {}, error() {} },
        cluster: {
          blockHeight: () => 1_000,
          currentSlot: () => 5_000,
          lastValidHeight: () => 1_150,
          statusReporting: () => "yes",
          contentOf: () => "unknown",
          fetchStatuses: () => Promise.reject(new Error("no node is used")),
        },
        resender: { roomFor: () => "none", resend: () => 0 },
        onFinalState: () => {
          ended += 1;
        },
        onProcessed() {},
        onRolledBack() {},
      },
      {
        countMax: COUNT,
        trackForMs: 600_000,
        pollMs: 10_000,
        resendsPerSecond: 2_000,
        leaders: 2,
        deliveryTtlMs: 800,
      },
    );
  const landing = newLanding();
  landing.start();
  landing.usePlan(planOf("a", "b"));
  let id = 0;
  const tracker = (size: number, to = landing): (() => void) => {
    const bytes = new Uint8Array(size);
    const view = new DataView(bytes.buffer);
    return () => {
      id += 1;
      sign(view, 1, id);
      const packet: Packet = {
        id,
        bytes,
        account: "acme",
        receivedNs: 0,
        maxRetries: null,
        offeredLamports: 0,
      };
      to.track(packet, ACCEPTED, 1_000 * id, "Beta");
    };
  };
  const small = tracker(SIZES[0]);
  const sent = (): void => {
    const outcome: Outcome = {
      packetId: id,
      ...target("a"),
      kind: "sent",
      reason: null,
      atNs: 0,
      rttUs: 900,
      connectionAgeMs: 1,
      resend: 0,
    };
    landing.outcome(outcome);
  };

  for (let n = 0; n < COUNT + 10; n += 1) small();
  assert.equal(landing.inFlight, COUNT);
  assert.equal(ended, 10);
  assert.equal(landing.counters.reasons.table_full, 10);

  // The common case: a thousand in flight; the oldest lands while the next one arrives.
  const calm = newLanding();
  calm.usePlan(planOf("a", "b"));
  const come = tracker(SIZES[0], calm);
  for (let n = 0; n < CALM; n += 1) come();
  const calmly = (): void => {
    come();
    calm.seen(signatureOf(id - CALM), LANDED);
  };
  calmly();
  assert.equal(calm.counters.landed, 1);

  const plans = [planOf("a", "b"), planOf("c", "d")];
  let turn = 0;
  return new Bench({ name: "landing, full", time: 500 })
    .add(`track, ${SIZES[0]} bytes, and one lands, ${CALM} in flight`, calmly)
    .add(`track, ${SIZES[0]} bytes`, small)
    .add(`track, ${SIZES[1]} bytes`, tracker(SIZES[1]))
    .add("a copy's news", sent)
    .add("a resend round is put in order", () => {
      turn += 1;
      landing.usePlan(plans[turn % 2] ?? planOf());
    });
}
