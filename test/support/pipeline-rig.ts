import type { Clock } from "../../src/core/clock.ts";
import { encodeSignature } from "../../src/core/encoding.ts";
import type { Answer, Packet, Verdict } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import type { DecodeDone } from "../../src/decode/workers/worker-handle.ts";
import { createSeen } from "../../src/dedup/recent-transactions.ts";
import { createPipeline } from "../../src/edge/pipeline.ts";
import { createLanding } from "../../src/landing/landing.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import type { FrontSend } from "../../src/send/native/send-record.ts";
import { createFakeClock } from "./fake-clock.ts";
import { DECODER, newPacket } from "./packets.ts";

interface Pending {
  readonly packet: Packet;
  readonly done: DecodeDone;
}

/** Real seen, receipts and decoder, with a decode stage that can wait and a sender to script. */
export function newRig(sharesSeen = false) {
  const clock = createFakeClock();
  const seen = createSeen();
  /** For which times the slot was asked for. */
  const slotsAsked: (number | undefined)[] = [];
  const slotAt = (nowNs?: number): number => {
    slotsAsked.push(nowNs);
    return 400;
  };
  const receipts = createReceipts({ clock, slot: slotAt }, { keepMs: 60_000, entriesMax: 100 });
  const decoder = createDecoder(DECODER);
  const landing = newLanding(clock, slotAt);
  const rig = {
    clock,
    seen,
    receipts,
    /** Calls in their order, by stage. */
    calls: [] as string[],
    /** What `sender.accept` answers. */
    taken: 1,
    sent: [] as Packet[],
    /** What was sent elsewhere. */
    adopted: [] as { packet: Packet; send: FrontSend; sentNs: number }[],
    /** Whether verdicts wait, as those of a worker do. */
    holds: false,
    pending: [] as Pending[],
    answers: [] as Answer[],
    counted: [] as string[],
    /** Before each look at what is claimed. */
    onClaim: (): void => {},
    slotsAsked,
  };
  const note = (call: string): void => void rig.calls.push(call);
  const pipeline = createPipeline({
    clock,
    seen: {
      query(bytes, offset, nowNs) {
        note("seen.query");
        return seen.query(bytes, offset, nowNs);
      },
      insert(bytes, offset, nowNs) {
        note("seen.insert");
        seen.insert(bytes, offset, nowNs);
      },
      claim(bytes, offset, nowNs) {
        note("seen.claim");
        rig.onClaim();
        return seen.claim(bytes, offset, nowNs);
      },
      confirm(bytes, offset) {
        note("seen.confirm");
        seen.confirm(bytes, offset);
      },
      retract(bytes, offset) {
        note("seen.retract");
        seen.retract(bytes, offset);
      },
    },
    dispatch: {
      accept(packet, done) {
        note("decode");
        if (rig.holds) rig.pending.push({ packet: kept(packet), done });
        else done(packet, decoder.decode(packet.bytes));
      },
    },
    sender: {
      accept(packet) {
        note("send");
        if (rig.taken > 0) rig.sent.push(kept(packet));
        return rig.taken;
      },
      adopt(packet, send, sentNs) {
        note("adopt");
        rig.adopted.push({ packet: kept(packet), send, sentNs });
      },
    },
    outcomes: { hold: () => note("hold"), release: () => note("release") },
    landing: {
      track(packet, accepted, nowNs) {
        note("track");
        landing.track(packet, accepted, nowNs);
      },
      join(bytes, offset, maxRetries) {
        const joins = landing.join(bytes, offset, maxRetries);
        if (joins) note("join");
        return joins;
      },
    },
    receipts: {
      open(packet, accepted, decodedNs, nowNs) {
        note("receipt.open");
        receipts.open(packet, accepted, decodedNs, nowNs);
      },
      share(bytes, offset, account) {
        note("receipt.share");
        return receipts.share(bytes, offset, account);
      },
    },
    sharesSeen,
    usage: { taken: (packetId, keyId) => void rig.counted.push(`${packetId} ${keyId}`) },
  });
  const submit = (bytes: Uint8Array, account = "acme", maxRetries: number | null = null): void =>
    pipeline.submit(
      { bytes, account, keyId: "k", receivedNs: clock.nowNs(), maxRetries },
      (answer) => {
        note("answer");
        rig.answers.push(answer);
      },
    );
  /** Gives the verdict on what waits, oldest first. */
  const decide = (verdict?: Verdict): void => {
    for (const { packet, done } of rig.pending.splice(0)) {
      done(packet, verdict ?? decoder.decode(packet.bytes));
    }
  };
  return { ...rig, rig, landing, pipeline, submit, decide };
}

/** A real one, whose chain says nothing and whose leaders take nothing again. */
export function newLanding(clock: Clock, slotAt: (nowNs?: number) => number) {
  return createLanding(
    {
      clock,
      log: { info() {}, warn() {}, error() {} },
      chain: {
        blockHeight: () => null,
        currentSlot: slotAt,
        lastValidHeight: () => null,
        statusTelling: () => "yes",
        fetchStatuses: () => Promise.reject(new Error("nobody answers")),
      },
      resender: { again: () => 0 },
      onEnd() {},
      onSighted() {},
      onVanished() {},
    },
    {
      countMax: 100,
      watchMs: 60_000,
      pollMs: 400,
      resendsPerSecond: 0,
      leaders: 2,
      copyTtlMs: 800,
    },
  );
}

/** The views are lent, so whoever keeps one copies it. */
export function kept(packet: Packet): Packet {
  return { ...packet, bytes: packet.bytes.slice() };
}

export const bytesOf = (id: number, lamports = 1000): Uint8Array => newPacket(id, lamports).bytes;
export const signatureOf = (bytes: Uint8Array): string => encodeSignature(bytes, 1);
