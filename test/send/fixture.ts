/** A sender on a fake clock and a fake transport, with a record of its outcomes. */

import type { Outcome, Packet, Plan, Target } from "../../src/core/flow.ts";
import type { TargetTable } from "../../src/send/native/target-table.ts";
import { createSender, type SenderOptions } from "../../src/send/sender.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeTransport } from "../support/fake-transport.ts";
import { acceptAndReport } from "../support/packets.ts";

export function targetOf(address: string): Target {
  return { identity: `id-of-${address}`, address, slot: 7 };
}

/** Sends to `send`, keeps `warm` open as well. */
export function planOf(send: readonly string[], warm: readonly string[] = []): Plan {
  return { slot: 7, send: send.map(targetOf), warm: [...send, ...warm].map(targetOf) };
}

/** With `targetTable` ingress threads may send as well. */
export async function startFixture(
  plan: Plan,
  options: Partial<SenderOptions> = {},
  targetTable: TargetTable | null = null,
) {
  const clock = createFakeClock();
  const transport = createFakeTransport(targetTable);
  transport.nowNs = () => clock.nowNs();
  const outcomes: Outcome[] = [];
  const log = { info() {}, warn() {}, error() {} };
  const onOutcome = (outcome: Outcome): void => void outcomes.push(outcome);
  const sender = createSender(
    { clock, transport, onOutcome, log, targetTable },
    { random: () => 0, ...options },
  );
  sender.usePlan(plan);
  await sender.start();
  let id = 0;
  const packet = (id: number, bytes: Uint8Array, offeredLamports: number): Packet => ({
    id,
    bytes,
    account: "test",
    receivedNs: clock.nowNs(),
    maxRetries: null,
    offeredLamports,
  });
  return {
    clock,
    transport,
    outcomes,
    sender,
    packet,
    /** Returns how many connections accepted it; the packet's id counts up from 1. */
    send(bytes: Uint8Array = Uint8Array.of(1, 2, 3), offeredLamports = 0): number {
      id += 1;
      return acceptAndReport(sender, packet(id, bytes, offeredLamports));
    },
    /** "kind" or "kind:reason" of each outcome of a packet, in order. */
    story(packetId: number, address?: string): string[] {
      return outcomes
        .filter((it) => it.packetId === packetId)
        .filter((it) => address === undefined || it.address === address)
        .map((it) => (it.reason === null ? it.kind : `${it.kind}:${it.reason}`));
    },
    stateOf: (address: string) => sender.leaders().find((it) => it.address === address)?.state,
  };
}
