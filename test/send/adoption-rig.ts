/** A sender and a front, on a fake clock, a fake transport and a fake engine. */

import { newFrontSend } from "../../src/send/native/send-record.ts";
import { SHARED_ROUTES_BYTES, SharedRoutes } from "../../src/send/native/shared-route-table.ts";
import type { SenderOptions } from "../../src/send/sender.ts";
import type { FakeConnection } from "../support/fake-transport.ts";
import { createFrontSender } from "../support/front-sender.ts";
import { packetOf } from "../support/packets.ts";
import { planOf, startRig } from "./rig.ts";

export const [A, B, C] = ["10.0.0.1:8009", "10.0.0.2:8009", "10.0.0.3:8009"] as const;
export const BYTES = Uint8Array.of(1, 2, 3);
/** Ids of packets that fronts sent. */
const FIRST_ID = 1_000;

/** A sender, and a front on an engine that answers `mask`; no copy is acknowledged by itself. */
export async function setUp(plan = planOf([A, B]), options: Partial<SenderOptions> = {}) {
  const memory = new SharedArrayBuffer(SHARED_ROUTES_BYTES);
  const routes = new SharedRoutes(memory);
  const rig = await startRig(plan, { random: () => 0, ...options }, routes);
  const engine = { mask: 0b11, peers: [] as number[] };
  const send = (_: number, copies: Uint32Array): number => {
    engine.peers = [...copies].filter((_, index) => index % 2 === 0);
    return engine.mask;
  };
  const front = createFrontSender({ txSend: send }, memory);
  let id = FIRST_ID;
  /** Copies of `trySend` that wait in the engine. */
  const held: { readonly connection: FakeConnection; readonly stream: number }[] = [];
  return {
    ...rig,
    routes,
    engine,
    /** The sender's own. */
    accept: rig.send,
    /** As a batch of the engine's news ends. */
    look: () => routes.afterDrain(),
    /** What a front did; null: it may not. The sender is not told. */
    front(mask = 0b11) {
      engine.mask = mask;
      const sent = newFrontSend();
      return front.send(BYTES, sent) ? sent : null;
    },
    /** Whether the front wants its last one adopted at once. */
    isUrgent: () => front.isUrgent,
    /** As `send`; null where the front may not. */
    trySend(mask: number): (() => void) | null {
      engine.mask = mask;
      const sent = newFrontSend();
      if (!front.send(BYTES, sent)) return null;
      const sentNs = rig.clock.nowNs();
      id += 1;
      const packet = packetOf(id, BYTES);
      for (let index = 0; index < sent.count; index += 1) {
        const connection = rig.transport.made[(engine.peers[index] ?? 0) - 1];
        const waits = ((mask >>> (16 + index)) & 1) === 1;
        const stream = sent.streams[index] ?? 0;
        if (connection !== undefined && waits) held.push({ connection, stream });
      }
      return () => rig.sender.adopt(packet, sent, sentNs);
    },
    held,
    /** Has a front send, and what it did to be adopted: answers when, and the streams. */
    send(mask = 0b11, priorityLamports = 0) {
      engine.mask = mask;
      const sent = newFrontSend();
      if (!front.send(BYTES, sent)) throw new Error("the front may not send");
      const sentNs = rig.clock.nowNs();
      id += 1;
      const packet = { ...packetOf(id, BYTES), priorityLamports };
      return {
        id,
        sentNs,
        streams: sent.streams,
        adopt: () => rig.sender.adopt(packet, sent, sentNs),
      };
    },
  };
}

/** Both leaders of the plan are live. */
export async function live(plan?: ReturnType<typeof planOf>, options?: Partial<SenderOptions>) {
  const rig = await setUp(plan, options);
  for (const address of [A, B]) rig.transport.to(address).admit();
  rig.look();
  return rig;
}
