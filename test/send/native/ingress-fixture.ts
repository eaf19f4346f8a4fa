/**
 * A sender and an ingress thread, on a fake clock, a fake transport and a fake engine.
 */

import { newSendRecord } from "../../../src/send/native/send-record.ts";
import { TargetTable } from "../../../src/send/native/target-table.ts";
import type { SenderOptions } from "../../../src/send/sender.ts";
import type { FakeConnection } from "../../support/fake-transport.ts";
import { createIngressSender } from "../../support/ingress-sender.ts";
import { packetOf } from "../../support/packets.ts";
import { TestTargets } from "../../support/target-table.ts";
import { planOf, startFixture } from "../fixture.ts";

export const [A, B, C] = ["10.0.0.1:8009", "10.0.0.2:8009", "10.0.0.3:8009"] as const;
export const BYTES = Uint8Array.of(1, 2, 3);
/** Ids of packets that ingress threads sent. */
const FIRST_ID = 1_000;

/**
 * A sender, and an ingress thread on an engine that returns `status`; no delivery is acknowledged
 * automatically.
 */
export async function setUp(plan = planOf([A, B]), options: Partial<SenderOptions> = {}) {
  const targets = new TestTargets();
  const targetTable = new TargetTable(targets);
  const fixture = await startFixture(plan, { random: () => 0, ...options }, targetTable);
  const engine = { status: 0b11, peers: [] as number[] };
  const send = (_: number, deliveries: Uint32Array): number => {
    engine.peers = [...deliveries].filter((_, index) => index % 2 === 0);
    return engine.status;
  };
  const ingressSender = createIngressSender({ txSend: send }, targets);
  let id = FIRST_ID;
  /** Deliveries of `trySend` that are queued in the engine. */
  const held: { readonly connection: FakeConnection; readonly number: number }[] = [];
  return {
    ...fixture,
    targetTable,
    engine,
    /** Packets sent by the sender itself. */
    accept: fixture.send,
    /** As at the end of a batch of engine events. */
    check: () => targetTable.afterEvents(),
    /** The send of an ingress thread; null: it may not. It is not recorded. */
    sendAsIngress(status = 0b11) {
      engine.status = status;
      const sent = newSendRecord();
      return ingressSender.send(BYTES, sent) ? sent : null;
    },
    /** Whether the ingress thread needs its last send recorded immediately. */
    needsImmediateWake: () => ingressSender.needsImmediateWake,
    /** As `send`; null where the ingress thread may not. */
    trySend(status: number): (() => void) | null {
      engine.status = status;
      const sent = newSendRecord();
      if (!ingressSender.send(BYTES, sent)) return null;
      const sentNs = fixture.clock.nowNs();
      id += 1;
      const packet = packetOf(id, BYTES);
      for (let index = 0; index < sent.count; index += 1) {
        const connection = fixture.transport.made[(engine.peers[index] ?? 0) - 1];
        const waits = ((status >>> (16 + index)) & 1) === 1;
        if (connection !== undefined && waits) held.push({ connection, number: sent.number });
      }
      return () => fixture.sender.recordSend(packet, sent, sentNs);
    },
    held,
    /** Makes an ingress thread send, and records it: returns the time and the number. */
    send(status = 0b11, offeredLamports = 0) {
      engine.status = status;
      const sent = newSendRecord();
      if (!ingressSender.send(BYTES, sent)) throw new Error("the ingress thread may not send");
      const sentNs = fixture.clock.nowNs();
      id += 1;
      const packet = { ...packetOf(id, BYTES), offeredLamports };
      return {
        id,
        sentNs,
        number: sent.number,
        recordSend: () => fixture.sender.recordSend(packet, sent, sentNs),
      };
    },
  };
}

/** Both leaders of the plan are live. */
export async function live(plan?: ReturnType<typeof planOf>, options?: Partial<SenderOptions>) {
  const fixture = await setUp(plan, options);
  for (const address of [A, B]) fixture.transport.to(address).admit();
  fixture.check();
  return fixture;
}
