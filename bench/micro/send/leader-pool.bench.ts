/**
 * How long one healthy leader waits for its delivery, over real connections: alone, first and last
 * of four healthy ones, and first and last of four of which the others are dead, stalled and
 * evicting. Timed from `accept` to the event that this delivery is on the wire.
 *
 * All arms take turns, one transaction each, in a rotating order, so that the machine's
 * disturbances affect all equally; two arms are the same, and their difference is the noise.
 * Compare arms with an equal number of writes before the healthy leader's: `first of four` with
 * `first, before …`, and `alone` with `last, behind …`, whose other leaders accept nothing.
 */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { systemClock } from "../../../src/core/clock.ts";
import { loadNative } from "../../../src/native/load.ts";
import { createSimulatedLeader, type LeaderBehaviour } from "../../../src/sandbox/leader.ts";
import { freshIdentity } from "../../../src/send/identity.ts";
import { createNativeTransport } from "../../../src/send/native/transport-native.ts";
import { createQuicTransport } from "../../../src/send/portable/transport-quic.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../../../src/send/portable/transport-quic-options.ts";
import { createSender, SENDER_DEFAULTS, type Sender } from "../../../src/send/sender.ts";
import type { Transport } from "../../../src/send/transport.ts";

const SAMPLES = 2_000;
const WARM_UP = 200;
const BYTES = new Uint8Array(300).fill(7);
const log = { info() {}, warn() {}, error() {} };

type Behaviour = Partial<LeaderBehaviour>;
const BAD: readonly Behaviour[] = [
  { admission: "silent" },
  { reading: "stalled" },
  { closeNew: { code: 1, reason: "dropped" } },
];
const GOOD: readonly Behaviour[] = [{}, {}, {}];

/** By name: the leaders before and behind the healthy one. */
const ARMS: readonly (readonly [string, readonly Behaviour[], readonly Behaviour[]])[] = [
  ["alone", [], []],
  ["alone, once more", [], []],
  ["first of four healthy", [], GOOD],
  ["first, before a dead, a stalled, an evicting one", [], BAD],
  ["last of four healthy", GOOD, []],
  ["last, behind a dead, a stalled, an evicting one", BAD, []],
];

interface Arm {
  readonly name: string;
  /** Sends one; returns the time until the healthy leader's delivery was sent, in milliseconds. */
  send(): Promise<number>;
  stop(): Promise<void>;
}

async function arm(
  name: string,
  transport: Transport,
  before: readonly Behaviour[],
  behind: readonly Behaviour[],
): Promise<Arm> {
  const clock = systemClock;
  const leaders = [...before, {}, ...behind].map((behaviour) =>
    createSimulatedLeader({ clock, identity: freshIdentity(), behaviour }),
  );
  const addresses: string[] = [];
  for (const leader of leaders) addresses.push((await leader.start()).address);
  const healthy = addresses[before.length];
  let sentNs = 0;
  let onSent = (): void => {};
  const sender: Sender = createSender({
    clock,
    transport,
    log,
    onOutcome({ address, kind }) {
      if (address !== healthy || kind !== "sent") return;
      sentNs = clock.nowNs();
      onSent();
    },
  });
  await sender.start();
  const targets = addresses.map((address) => ({ identity: address, address, slot: 1 }));
  sender.usePlan({ slot: 1, send: targets, warm: targets });
  const isLive = (address: string | undefined): boolean =>
    sender.leaders().some((leader) => leader.address === address && leader.state === "live");
  const wanted = before === BAD || behind === BAD ? [healthy] : addresses;
  while (!wanted.every(isLive)) await new Promise((resolve) => setTimeout(resolve, 5));
  let lastId = 0;
  return {
    name,
    async send() {
      lastId += 1;
      const fields = { id: lastId, bytes: BYTES, account: "a", receivedNs: 0, maxRetries: null };
      const packet = { ...fields, offeredLamports: lastId };
      sentNs = 0;
      const acked = new Promise<void>((resolve) => {
        onSent = resolve;
      });
      const startNs = clock.nowNs();
      assert(sender.accept(packet) > 0);
      sender.report(packet);
      if (sentNs === 0) await acked;
      return (sentNs - startNs) / 1e6;
    },
    async stop() {
      await sender.stop();
      for (const leader of leaders) await leader.stop();
    },
  };
}

function portable(): Transport {
  const options = { ...QUIC_TRANSPORT_DEFAULTS, bindIpv4: "127.0.0.1", bindIpv6: null };
  return createQuicTransport({ clock: systemClock, identity: freshIdentity() }, options);
}

/** Null where it is not built. */
function native(): (() => Transport) | null {
  const loaded = loadNative();
  if (loaded.kind !== "loaded") return null;
  const { handshakeMs, keepAliveMs, queuePerLeader, deliveryTtlMs } = SENDER_DEFAULTS;
  const { idleTimeoutMs } = QUIC_TRANSPORT_DEFAULTS;
  return () =>
    createNativeTransport(
      { native: loaded.native, identity: freshIdentity(), log },
      {
        binds: ["127.0.0.1:0"],
        busyPollUs: 0,
        idleTimeoutMs,
        keepAliveMs,
        admissionTimeoutMs: handshakeMs + idleTimeoutMs,
        queuePerLeader,
        deliveryTtlMs,
      },
    );
}

/** Measures the arms of one engine in turns; adds a task for each that reports its samples. */
async function measure(bench: Bench, engine: string, create: () => Transport): Promise<void> {
  const arms: Arm[] = [];
  for (const [name, before, behind] of ARMS) {
    arms.push(await arm(`${engine}: ${name}`, create(), before, behind));
  }
  const times = arms.map((): number[] => []);
  for (let round = 0; round < SAMPLES + WARM_UP; round += 1) {
    for (let turn = 0; turn < arms.length; turn += 1) {
      const place = (turn + round) % arms.length;
      const ms = (await arms[place]?.send()) ?? 0;
      if (round >= WARM_UP) times[place]?.push(ms);
      // Lets the leaders read it before the next one is sent.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  for (const each of arms) await each.stop();
  for (const [place, { name }] of arms.entries()) {
    let next = 0;
    bench.add(name, () => {
      next += 1;
      return { overriddenDuration: times[place]?.[(next - 1) % SAMPLES] ?? 0 };
    });
  }
}

export async function build(): Promise<Bench> {
  const bench = new Bench({
    name: "send/leader-pool",
    iterations: SAMPLES,
    time: 0,
    warmup: false,
  });
  await measure(bench, "portable", portable);
  const engine = native();
  if (engine !== null) await measure(bench, "native", engine);
  return bench;
}
