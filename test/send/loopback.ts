/** A simulated leader and a transport on loopback, for tests about bytes on the wire. */

import { systemClock } from "../../src/core/clock.ts";
import {
  createSimulatedLeader,
  type LeaderBehaviour,
  type SimulatedLeader,
} from "../../src/sandbox/leader.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { createQuicTransport } from "../../src/send/portable/transport-quic.ts";
import {
  QUIC_TRANSPORT_DEFAULTS,
  type QuicTransportOptions,
} from "../../src/send/portable/transport-quic-options.ts";
import type {
  CloseCause,
  DeliveryResult,
  EngineConnection,
  Transport,
} from "../../src/send/transport.ts";
import { NO_EVENTS } from "../support/fake-transport.ts";

export interface Received {
  readonly bytes: Buffer;
  readonly peerPubkey: Uint8Array | null;
}

export interface TestLeader {
  readonly leader: SimulatedLeader;
  readonly address: string;
  readonly received: readonly Received[];
}

export async function startLeader(
  behaviour: Partial<LeaderBehaviour> = {},
  host = "127.0.0.1",
): Promise<TestLeader> {
  const leader = createSimulatedLeader({
    clock: systemClock,
    identity: freshIdentity(),
    host,
    behaviour,
  });
  const received: Received[] = [];
  leader.onTransaction((bytes, { peerPubkey }) => {
    received.push({ bytes: Buffer.from(bytes), peerPubkey });
  });
  const { address } = await leader.start();
  return { leader, address, received };
}

export async function startTransport(
  identity: Identity = freshIdentity(),
  options: Partial<QuicTransportOptions> = {},
): Promise<Transport> {
  const transport = createQuicTransport(
    { clock: systemClock, identity },
    { ...QUIC_TRANSPORT_DEFAULTS, bindIpv4: "127.0.0.1", bindIpv6: null, ...options },
  );
  await transport.start();
  return transport;
}

export interface TestConnection {
  readonly connection: EngineConnection;
  /** Why it ended; null while it has not. */
  readonly cause: () => CloseCause | null;
  /** Results of its deliveries, by their numbers. */
  readonly results: ReadonlyMap<number, DeliveryResult>;
}

export function connectTo(transport: Transport, address: string): TestConnection {
  let cause: CloseCause | null = null;
  const results = new Map<number, DeliveryResult>();
  const connection = transport.connect(address, {
    ...NO_EVENTS,
    result: (delivery, result) => void results.set(delivery, result),
    ended: (it) => {
      cause = it;
    },
  });
  if (connection === null) throw new Error("the connection did not begin");
  return { connection, cause: () => cause, results };
}

/** `size` bytes that differ for each seed. */
export function payload(size: number, seed = 1): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => (index * 31 + seed * 17) & 0xff);
}
