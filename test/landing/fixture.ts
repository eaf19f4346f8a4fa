/** A landing stage on a fake clock, with a cluster and leaders that the test controls. */

import { expect } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import type {
  Accepted,
  FinalState,
  Outcome,
  Packet,
  ProcessedEvent,
  Target,
} from "../../src/core/flow.ts";
import { createLanding, type LandingOptions } from "../../src/landing/landing.ts";
import { type AccountEnd, createLandingShares } from "../../src/landing/landing-shares.ts";
import type {
  ClusterView,
  Resender,
  StatusReporting,
  StatusResponse,
  TxStatus,
} from "../../src/landing/ports.ts";
import { createFakeClock } from "../support/fake-clock.ts";

export const OPTIONS: LandingOptions = {
  countMax: 100,
  trackForMs: 120_000,
  pollMs: 400,
  resendsPerSecond: 2_000,
  leaders: 2,
  deliveryTtlMs: 800,
};

const SIZE = 215;
const BLOCKHASH_OFFSET = 165;

export const ACCEPTED: Accepted = {
  kind: "accepted",
  version: 0,
  signatureOffset: 1,
  signatureCount: 1,
  messageOffset: 65,
  messageSize: SIZE - 65,
  keysOffset: 69,
  blockhashOffset: BLOCKHASH_OFFSET,
  durableNonce: false,
  tipLamports: 1_000_000,
  priorityFeeLamports: 0,
};

/** Bytes whose signature and blockhash are those of `id` and `hash`; nothing else matters here. */
export function bytesOf(id: number, hash = 1): Uint8Array {
  const bytes = new Uint8Array(SIZE).fill(id, 1, 65);
  const view = new DataView(bytes.buffer);
  view.setUint32(1, id);
  view.setUint32(BLOCKHASH_OFFSET, hash);
  return bytes;
}

/** The end of a transaction without error and nonce, for its account's share. */
export function endOf(kind: AccountEnd["kind"], reason: AccountEnd["reason"]): AccountEnd {
  return { kind, error: null, reason, isNonceUnused: false };
}

/** The ids in signatures, as `bytesOf` wrote it. */
function idsOf(signatures: Uint8Array): readonly number[] {
  const view = new DataView(signatures.buffer, signatures.byteOffset, signatures.byteLength);
  return Array.from({ length: signatures.length / 64 }, (_, index) => view.getUint32(index * 64));
}

export function targetOf(name: string): Target {
  return { identity: `id-${name}`, address: `${name}:8009`, slot: 1 };
}

interface Asked {
  readonly ids: readonly number[];
  answer(statuses: ReadonlyMap<number, TxStatus>, slot?: number): void;
  answerWith(answer: StatusResponse): void;
  fail(): void;
}

/** The outcome of a delivery. */
export function outcomeOf(packetId: number, name: string, kind: Outcome["kind"], atNs: number) {
  const reason = kind === "dropped" ? "not_connected" : kind === "failed" ? "stream_stopped" : null;
  const { identity, address, slot } = targetOf(name);
  return {
    packetId,
    identity,
    address,
    slot,
    kind,
    reason,
    atNs,
    rttUs: 0,
    connectionAgeMs: 1,
    resend: 0,
  } as const satisfies Outcome;
}

export function startFixture(over: Partial<LandingOptions> = {}) {
  const clock = createFakeClock();
  let height: number | null = 1_000;
  let heightNs = clock.nowNs();
  const cluster = {
    get height() {
      return height;
    },
    /** Received now. */
    set height(told: number | null) {
      height = told;
      heightNs = clock.nowNs();
    },
    slot: 5_000 as number | null,
    /** The slot that announcements show so far for any earlier time; null: the same slot. */
    slotShown: null as number | null,
    reporting: "yes" as StatusReporting,
    /** The slots whose blocks are known to hold no transaction; null: none is. */
    quietFrom: null as number | null,
    quietTo: 0,
    /** Whether the node knows the blockhash with this number; null: it does not respond. */
    knows: (_hash: number): boolean | null => true,
    /** The slot of the node that responds about blockhashes; null: `slot`. */
    checkSlot: null as number | null,
    /** By the number in the blockhash. */
    lastValid: new Map<number, number>([[1, 1_150]]),
  };
  const asked: Asked[] = [];
  /** The blockhashes of each request. */
  const checked: (readonly number[])[] = [];
  const shares = createLandingShares();
  const view: ClusterView = {
    blockHeight: () => cluster.height,
    blockHeightNs: () => heightNs,
    currentSlot: (atNs) =>
      atNs === undefined ? cluster.slot : (cluster.slotShown ?? cluster.slot),
    lastValidHeight: (hash) =>
      cluster.lastValid.get(new DataView(hash.buffer, hash.byteOffset).getUint32(0)) ?? null,
    async checkBlockhashes(blockhashes) {
      const hashes = blockhashes.map((hash) => new DataView(hash.buffer).getUint32(0));
      checked.push(hashes);
      const slot = cluster.checkSlot ?? cluster.slot ?? 0;
      return hashes.map((hash) => {
        const isValid = cluster.knows(hash);
        return isValid === null ? null : { slot, isValid };
      });
    },
    statusReporting: () => cluster.reporting,
    contentOf(fromSlot, toSlot) {
      if (cluster.quietFrom === null || cluster.quietFrom > fromSlot) return "unknown";
      return cluster.quietTo >= toSlot ? "empty" : "pending";
    },
    fetchStatuses: (signatures) =>
      new Promise((resolve, reject) => {
        const ids = idsOf(signatures);
        asked.push({
          ids,
          answer: (statuses, slot = cluster.slot ?? 0) =>
            resolve({ slot, statuses: ids.map((id) => statuses.get(id) ?? null) }),
          answerWith: resolve,
          fail: () => reject(new Error("no answer")),
        });
      }),
  };
  /** Leaders of the plan that accept resends now, in the plan's order. */
  let plan: readonly Target[] = [];
  const dead = new Set<string>();
  /** Leaders at which resends wait. */
  const saturated = new Set<string>();
  const resent: {
    readonly id: number;
    readonly account: string;
    readonly offeredLamports: number;
    readonly ordinal: number;
    readonly address: string;
    readonly bytes: Uint8Array;
  }[] = [];
  let offers = 0;
  /** Resends that a leader takes until it is full, by address; unlimited for others. */
  const room = new Map<string, number>();
  let roomsAsked = 0;
  const isFull = ({ address }: Target): boolean => room.get(address) === 0;
  const resender: Resender = {
    roomFor(to) {
      roomsAsked += 1;
      const wanting = plan.filter((each) => !dead.has(each.address) && to.wants(each));
      if (wanting.length === 0) return "none";
      return wanting.every(isFull) ? "full" : "room";
    },
    resend(packet, to) {
      offers += 1;
      let taken = 0;
      for (const target of plan) {
        if (isFull(target) || dead.has(target.address) || !to.wants(target)) continue;
        if (!to.mayLeave()) break;
        const left = room.get(target.address);
        if (left !== undefined) room.set(target.address, left - 1);
        to.accepted(target, saturated.has(target.address));
        resent.push({
          id: packet.id,
          account: packet.account,
          offeredLamports: packet.offeredLamports,
          ordinal: to.ordinal,
          address: target.address,
          bytes: Uint8Array.from(packet.bytes),
        });
        taken += 1;
      }
      return taken;
    },
  };
  const finalStates: FinalState[] = [];
  const processedEvents: (ProcessedEvent & { packetId: number | undefined })[] = [];
  const rolledBack: number[] = [];
  /**
   * What the gate was asked, in milliseconds since the start, what it answers, and what it forgot.
   */
  const gate = {
    isOpen: true,
    renewals: [] as { sinceMs: number; nowMs: number }[],
    forgotten: [] as { id: number | undefined; sinceMs: number }[],
  };
  const startNs = clock.nowNs();
  /** Sends that `flushEvents` must track. */
  const unread: (() => void)[] = [];
  const landing = createLanding(
    {
      clock,
      log: { info() {}, warn() {}, error() {} },
      cluster: view,
      resender,
      shares,
      deliveryGate: {
        renew(_bytes, sinceNs, nowNs) {
          const [sinceMs, nowMs] = [sinceNs, nowNs].map((ns) => (ns - startNs) / NS_PER_MS);
          gate.renewals.push({ sinceMs: sinceMs ?? 0, nowMs: nowMs ?? 0 });
          return gate.isOpen;
        },
        forget(bytes, sinceNs) {
          const [id] = idsOf(bytes.subarray(1, 65));
          gate.forgotten.push({ id, sinceMs: (sinceNs - startNs) / NS_PER_MS });
        },
      },
      flushEvents() {
        for (const track of unread.splice(0)) track();
      },
      onFinalState(end, signature) {
        expect(idsOf(signature)).toEqual([end.packetId]);
        finalStates.push(end);
      },
      onProcessed(sighting, signature) {
        processedEvents.push({ packetId: idsOf(signature)[0], ...sighting });
      },
      onRolledBack: (signature) => void rolledBack.push(...idsOf(signature)),
    },
    { ...OPTIONS, ...over },
  );

  function packetOf(
    id: number,
    hash: number,
    maxRetries: number | null,
    offeredLamports: number,
    account: string,
  ): Packet {
    const receivedNs = clock.nowNs();
    const bytes = bytesOf(id, hash);
    return { id, bytes, account, receivedNs, maxRetries, offeredLamports };
  }
  const fixture = {
    clock,
    cluster,
    landing,
    asked,
    checked,
    shares,
    resent,
    finalStates,
    processedEvents,
    rolledBack,
    unread,
    gate,
    dead,
    saturated,
    room,
    /** How often landing asked whether a leader takes a resend. */
    get roomsAsked() {
      return roomsAsked;
    },
    /** Resends that were offered to leaders, accepted or not. */
    get offers() {
      return offers;
    },
    /** Tracks a packet; `sent` are leaders whose delivery is on the wire immediately. */
    track(
      id: number,
      given: {
        readonly hash?: number;
        readonly maxRetries?: number | null;
        readonly accepted?: Partial<Accepted>;
        readonly sent?: readonly string[];
        readonly account?: string;
        readonly planName?: string;
      } = {},
    ): void {
      const accepted = { ...ACCEPTED, ...given.accepted };
      const lamports = accepted.tipLamports + accepted.priorityFeeLamports;
      const { hash = 1, maxRetries = null, account = "a", planName = "Beta" } = given;
      const packet = packetOf(id, hash, maxRetries, lamports, account);
      landing.track(packet, accepted, clock.nowNs(), planName);
      for (const name of given.sent ?? ["a"]) {
        landing.outcome(outcomeOf(id, name, "sent", clock.nowNs()));
      }
    },
    plan(...leaders: readonly string[]): void {
      plan = leaders.map(targetOf);
      landing.usePlan({ slot: cluster.slot ?? 0, send: plan, warm: plan });
    },
    /** One more slot and block in each of `count` steps of 250 ms. */
    slots(count: number): void {
      for (let step = 0; step < count; step += 1) {
        if (cluster.slot !== null) cluster.slot += 1;
        if (cluster.height !== null) cluster.height += 1;
        clock.advance(250);
      }
    },
    /** Runs the continuations of received responses. */
    settle: async (): Promise<void> => {
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
    },
    /** Responds to every open request with these statuses, absent for all others. */
    async answerAll(statuses: ReadonlyMap<number, TxStatus> = new Map(), slot?: number) {
      for (const request of asked.splice(0)) request.answer(statuses, slot);
      await fixture.settle();
    },
  };
  return fixture;
}

/** A fixture with leaders a and b in the plan, and its clock past the first pause. */
export function startFixtureWithPlan(over: Parameters<typeof startFixture>[0] = {}) {
  const fixture = startFixture(over);
  fixture.landing.start();
  fixture.plan("a", "b");
  return fixture;
}

/** Leaders that received a transaction again, in order. */
export function resendTo(fixture: ReturnType<typeof startFixture>, id: number): string[] {
  return fixture.resent.filter((it) => it.id === id).map(({ address }) => address.slice(0, 1));
}
