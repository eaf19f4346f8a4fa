/**
 * Agave leaders as a child process, and a sender with a record of its outcomes, for the suite
 * against the real server.
 */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/core/clock.ts";
import type { Outcome, Packet, Plan, Target } from "../../src/core/flow.ts";
import { chooseEngine, type EngineChoice } from "../../src/native/choose.ts";
import type { NativeEngine } from "../../src/native/contract.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { newSendRecord } from "../../src/send/native/send-record.ts";
import { TargetTable } from "../../src/send/native/target-table.ts";
import { createNativeTransport } from "../../src/send/native/transport-native.ts";
import { createQuicTransport } from "../../src/send/portable/transport-quic.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../../src/send/portable/transport-quic-options.ts";
import {
  createSender,
  SENDER_DEFAULTS,
  type Sender,
  type SenderOptions,
} from "../../src/send/sender.ts";
import type { Transport } from "../../src/send/transport.ts";
import { NO_SUBMISSIONS } from "../send/native-fixture.ts";
import { ENGINE, THREADS } from "../support/flow.ts";
import { createIngressSender, type DrainHooks, withDrainHooks } from "../support/ingress-sender.ts";
import { acceptAndReport } from "../support/packets.ts";
import { TestTargets } from "../support/target-table.ts";
import { until } from "../support/wait.ts";
import { leaderProgram } from "./build.ts";

export interface ReceivedTransaction {
  readonly leader: number;
  readonly bytes: Buffer;
  /** Base58 key of the certificate that the server saw. */
  readonly peer: string | null;
  readonly staked: boolean;
}

interface LeaderEvent {
  readonly event: string;
  readonly leader: number;
  readonly address: string;
  readonly bytes: string;
  readonly peer: string | null;
  readonly staked: boolean;
  readonly command: string;
}

export interface AgaveLeaders {
  readonly addresses: readonly string[];
  readonly received: readonly ReceivedTransaction[];
  /** Sends a command and waits until the program reports that it is done. */
  command(line: string): Promise<void>;
  close(): void;
}

export async function startLeaders(count: number, options: readonly string[] = []) {
  const child: ChildProcessWithoutNullStreams = spawn(
    leaderProgram(),
    ["--leaders", String(count), "--per-minute", "1000", ...options],
    { stdio: ["pipe", "pipe", "pipe"] },
  );
  let complaint = "";
  child.stderr.on("data", (data: Buffer) => {
    complaint += data.toString();
  });
  const addresses: string[] = [];
  const received: ReceivedTransaction[] = [];
  const answers: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    // The program is part of this project and prints nothing else.
    const event = JSON.parse(line) as LeaderEvent;
    if (event.event === "transaction") {
      const bytes = Buffer.from(event.bytes, "base64");
      received.push({ leader: event.leader, bytes, peer: event.peer, staked: event.staked });
    } else if (event.event === "listening") addresses[event.leader] = event.address;
    if (event.event !== "transaction" && event.event !== "connected") answers.push(line);
  });
  await until(`leaders listen; their output: ${complaint}`, () => answers.length === count);
  const leaders: AgaveLeaders = {
    addresses,
    received,
    async command(line) {
      const before = answers.length;
      child.stdin.write(`${line}\n`);
      await until(`a response to ${line}; ${complaint}`, () => answers.length > before);
      const answer = answers[before] ?? "";
      if (answer.includes('"unknown"')) throw new Error(`the leader does not know: ${line}`);
    },
    close: () => void child.kill(),
  };
  return leaders;
}

export interface Fixture {
  readonly sender: Sender;
  readonly outcomes: readonly Outcome[];
  readonly identity: Identity;
  /** Sends one transaction; returns how many connections accepted it. */
  send(bytes: Uint8Array): number;
  count(kind: Outcome["kind"], address?: string): number;
}

const log = { info() {}, warn() {}, error() {} };

/** The engine that TEST_ENGINE names; defaults to the portable one. */
function transportOf(
  engine: EngineChoice,
  identity: Identity,
  targetTable: TargetTable | null,
  hooks: DrainHooks,
) {
  const shared = targetTable && { targetTable, submissions: NO_SUBMISSIONS };
  if (engine.native === null) {
    const options = { ...QUIC_TRANSPORT_DEFAULTS, bindIpv4: "127.0.0.1", bindIpv6: null };
    return createQuicTransport({ clock: systemClock, identity }, options);
  }
  return createNativeTransport(
    { native: withDrainHooks(engine.native, hooks), identity, log, shared },
    {
      binds: ["127.0.0.1:0"],
      busyPollUs: 0,
      idleTimeoutMs: 10_000,
      keepAliveMs: 1_000,
      admissionTimeoutMs: 11_000,
      queuePerLeader: SENDER_DEFAULTS.queuePerLeader,
      deliveryTtlMs: SENDER_DEFAULTS.deliveryTtlMs,
    },
  );
}

/** How long an ingress thread may delay records that are not urgent. */
const RECORDED_AFTER_MS = 100;

/** Sends one packet; returns how many connections accepted it. */
type Send = (packet: Packet) => number;

/**
 * Sends as an ingress thread does where it may, and records the send afterwards: before engine
 * events are drained, immediately where that is urgent, or after a delay.
 */
function sendAsIngressThread(
  native: NativeEngine,
  targets: TestTargets,
  hooks: DrainHooks,
  sender: Sender,
): Send {
  const ingressSender = createIngressSender(native, targets);
  const unrecorded: (() => void)[] = [];
  const recordAll = (): void => {
    for (const act of unrecorded.splice(0)) act();
  };
  hooks.beforeDrain = recordAll;
  return (packet) => {
    const sent = newSendRecord();
    if (!ingressSender.send(packet.bytes, sent)) {
      recordAll();
      return acceptAndReport(sender, packet);
    }
    const sentNs = systemClock.nowNs();
    unrecorded.push(() => sender.recordSend(packet, sent, sentNs));
    if (ingressSender.needsImmediateWake) {
      // The sender queues deliveries for the leaders that the ingress thread left out.
      recordAll();
      return sender.sendableCount;
    }
    systemClock.after(RECORDED_AFTER_MS, recordAll);
    const taken = (sent.status | (sent.status >>> 16)) & 0xffff;
    return taken.toString(2).replaceAll("0", "").length;
  };
}

/** A started sender with the plan of these addresses; reconnects fast by default. */
export async function startSender(
  addresses: readonly string[],
  options: Partial<SenderOptions> = {},
  identity: Identity = freshIdentity(),
): Promise<Fixture> {
  const outcomes: Outcome[] = [];
  const engine = chooseEngine(ENGINE === "native" ? "native" : "portable", log);
  const targets = new TestTargets(engine.native);
  const targetTable = THREADS > 0 ? new TargetTable(targets) : null;
  const hooks: DrainHooks = { beforeDrain() {} };
  const transport: Transport = transportOf(engine, identity, targetTable, hooks);
  const onOutcome = (outcome: Outcome): void => void outcomes.push(outcome);
  const sender = createSender(
    { clock: systemClock, transport, onOutcome, log, targetTable },
    { reconnectMs: 200, reconnectMsMax: 400, handshakeMs: 1_000, ...options },
  );
  await sender.start();
  sender.usePlan(planOf(addresses));
  const send: Send =
    engine.native === null || targetTable === null
      ? (packet) => acceptAndReport(sender, packet)
      : sendAsIngressThread(engine.native, targets, hooks, sender);
  let id = 0;
  return {
    sender,
    outcomes,
    identity,
    send(bytes) {
      id += 1;
      const receivedNs = systemClock.nowNs();
      const taken = send({
        id,
        bytes,
        account: "test",
        receivedNs,
        maxRetries: null,
        offeredLamports: 0,
      });
      // 0 connections accepted it, whether all live leaders are full or none is live.
      return Math.max(0, taken);
    },
    count: (kind, address) =>
      outcomes.filter((it) => it.kind === kind && (address === undefined || it.address === address))
        .length,
  };
}

export function planOf(addresses: readonly string[]): Plan {
  const targets: Target[] = addresses.map((address, index) => ({
    identity: `leader-${index}`,
    address,
    slot: 100 + 4 * index,
  }));
  return { slot: 100, send: targets, warm: targets };
}

/** `size` bytes that differ for each seed. */
export function payload(size: number, seed: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let index = 0; index < size; index += 1) bytes[index] = (index * 31 + seed * 17) & 0xff;
  if (size >= 4) bytes.writeUInt32LE(seed, 0);
  return bytes;
}
