/**
 * The first datagram of each engine to a leader. Firedancer supports AES-128-GCM and X25519 only
 * and reads what it needs from one datagram, or the handshake costs another round trip, or never
 * ends.
 */

import { createSocket } from "node:dgram";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { createNativeTransport } from "../../src/send/native/transport-native.ts";
import { createQuicTransport } from "../../src/send/portable/transport-quic.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../../src/send/portable/transport-quic-options.ts";
import type { Transport } from "../../src/send/transport.ts";
import { readClientHello } from "../support/client-hello.ts";
import { NO_EVENTS } from "../support/fake-transport.ts";
import { native } from "./addon.ts";

const TLS_AES_128_GCM_SHA256 = 0x1301;
const X25519 = 29;
/** RFC 9000 section 14.1: minimum size of a datagram with an Initial. */
const INITIAL_BYTES_MIN = 1_200;
/** Passes every network unfragmented; no larger probe is sent before the handshake. */
const DATAGRAM_BYTES_MAX = 1_472;

const identity = freshIdentity();
const log = { info() {}, warn() {}, error() {} };

function portable(): Transport {
  const options = { ...QUIC_TRANSPORT_DEFAULTS, bindIpv4: "127.0.0.1", bindIpv6: null };
  return createQuicTransport({ clock: systemClock, identity }, options);
}

function nativeTransport(): Transport {
  if (native === null) throw new Error("the native engine is not built");
  return createNativeTransport(
    { native, identity, log },
    {
      binds: ["127.0.0.1:0"],
      busyPollUs: 0,
      idleTimeoutMs: 10_000,
      keepAliveMs: 4_000,
      admissionTimeoutMs: 10_000,
      queuePerLeader: 16,
      deliveryTtlMs: 800,
    },
  );
}

const ENGINES = [
  { name: "portable", make: portable },
  ...(native === null ? [] : [{ name: "native", make: nativeTransport }]),
];

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** The first datagram that a leader receives from a transport. */
async function firstOf(transport: Transport): Promise<Buffer> {
  const socket = createSocket("udp4");
  endings.push(() => socket.close());
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const first = new Promise<Buffer>((resolve) => socket.once("message", resolve));
  await transport.start();
  endings.push(() => transport.stop());
  const events = NO_EVENTS;
  expect(transport.connect(`127.0.0.1:${socket.address().port}`, events)).not.toBeNull();
  return first;
}

describe.each(ENGINES)("the first datagram of the $name engine", ({ make }) => {
  it("contains a complete ClientHello, with suite and group of Firedancer", async () => {
    const hello = readClientHello(await firstOf(make()));
    expect(hello.cipherSuites).toContain(TLS_AES_128_GCM_SHA256);
    expect(hello.keyShares).toContain(X25519);
    expect(hello.protocols).toEqual(["solana-tpu"]);
    expect(hello.datagramBytes).toBeGreaterThanOrEqual(INITIAL_BYTES_MIN);
    expect(hello.datagramBytes).toBeLessThanOrEqual(DATAGRAM_BYTES_MAX);
  });
});
