/**
 * The contract of an engine (`src/engine/engine.ts`), which both kinds keep: what it answers, what
 * its leaders receive, and what it says of each transaction, in which order.
 */

import { afterEach, describe, expect, it } from "vitest";
import { NS_PER_S, systemClock } from "../../src/core/clock.ts";
import { encodeBase58, encodeBase64, encodeSignature } from "../../src/core/encoding.ts";
import type { Outcome, Packet, SubmitResult, Target } from "../../src/core/flow.ts";
import { createPacket } from "../../src/core/packet.ts";
import { createEngine, type EngineConfig } from "../../src/engine/create-engine.ts";
import type { Engine, EngineEvents } from "../../src/engine/engine.ts";
import type { Submission } from "../../src/http/submit/submission.ts";
import type { EngineChoice } from "../../src/native/choose.ts";
import type { LeaderBehaviour } from "../../src/sandbox/leader.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { createQuicTransport } from "../../src/send/portable/transport-quic.ts";
import { native } from "../native/addon.ts";
import { startLeader, type TestLeader } from "../send/loopback.ts";
import { DECODER, newPacket } from "../support/packets.ts";
import { stub } from "../support/stub.ts";
import { until } from "../support/wait.ts";

const LOG = { info() {}, warn() {}, error() {} };
const CHOICES: readonly EngineChoice[] = [
  { name: "portable", native: null },
  ...(native === null ? [] : [{ name: "native" as const, native }]),
];

interface Setting {
  readonly leaders?: number;
  readonly behaviour?: Partial<LeaderBehaviour>;
  readonly send?: Partial<EngineConfig["send"]>;
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function configOf(engine: EngineChoice, send: Setting["send"]): EngineConfig {
  return stub<EngineConfig>({
    host: { busyPoll: false, realtime: false },
    send: stub<EngineConfig["send"]>({
      engine: engine.name,
      bind: [{ host: "127.0.0.1", port: 0 }],
      queuePerLeader: 64,
      deliveryTtlMs: 30_000,
      connections: 8,
      ...send,
    }),
    decode: stub<EngineConfig["decode"]>({ inline: "always", workers: 0, verify: true }),
    tip: stub<EngineConfig["tip"]>({
      accounts: DECODER.tipAccounts.map((key) => encodeBase58(key)),
      lamportsMin: DECODER.lamportsMin,
    }),
  });
}

/** What the engine says, in order. */
function listener() {
  const said: string[] = [];
  const outcomes: Outcome[] = [];
  const fixture = { lastId: 0 };
  const events: EngineEvents = {
    get nextId() {
      return fixture.lastId + 1;
    },
    opened({ id }, _accepted, keyId, plan) {
      fixture.lastId = id;
      said.push(`${id} opened ${keyId} ${plan}`);
    },
    duplicate: ({ account }, offset) => void said.push(`duplicate ${account} ${offset}`),
    valid() {},
    invalid: (errorCode) => void said.push(`invalid ${errorCode > 0}`),
    outcome(outcome) {
      outcomes.push(outcome);
      said.push(`${outcome.packetId} ${outcome.reason ?? outcome.kind} ${outcome.identity}`);
    },
    answered: () => void said.push("answered"),
  };
  return { said, outcomes, events };
}

describe.each(CHOICES)("the $name engine", (choice) => {
  async function start({ leaders: count = 2, behaviour = {}, send = {} }: Setting = {}) {
    const leaders: TestLeader[] = [];
    for (let index = 0; index < count; index += 1) {
      const leader = await startLeader(behaviour);
      leaders.push(leader);
      ends.push(() => leader.leader.stop());
    }
    const { events, ...heard } = listener();
    const identity = freshIdentity();
    const engine: Engine = createEngine(
      configOf(choice, send),
      {
        ...{ clock: systemClock, log: LOG, engine: choice, identity, events },
        ...{ ingressThreads: 0, planName: () => "" },
        modules: { createQuicTransport },
      },
      { reconnectMs: 100 },
    );
    await engine.start();
    await engine.startValidation();
    let isStopped = false;
    async function stop(): Promise<void> {
      if (isStopped) return;
      isStopped = true;
      await engine.stopValidation();
      await engine.stop();
    }
    ends.push(stop);
    const targets = leaders.map(
      ({ address }, index): Target => ({ identity: `L${index}`, address, slot: 1 }),
    );
    engine.usePlan({ slot: 1, send: targets, warm: targets });
    await until("every connection", () => engine.sender.sendableCount === count);
    const submit = (bytes: Uint8Array, account = "acme"): SubmitResult => {
      let result: SubmitResult | null = null;
      engine.submit({ ...submissionOf(bytes), account }, (response) => {
        result = response;
      });
      if (result === null) throw new Error("it did not answer at once");
      // As the edge does before it reads what listens.
      engine.flushEvents();
      return result;
    };
    const ended = (): number => heard.outcomes.filter(({ kind }) => kind !== "sent").length;
    return { ...heard, engine, identity, leaders, submit, stop, ended };
  }

  const submissionOf = (bytes: Uint8Array): Submission => ({
    ...{ bytes, account: "acme", keyId: "k", plan: "Beta", maxRetries: null },
    receivedNs: systemClock.nowNs(),
  });
  const acceptedOf = ({ bytes }: Packet): SubmitResult => ({
    kind: "accepted",
    signature: encodeSignature(bytes, 1),
  });
  const reasonOf = (result: SubmitResult): string =>
    result.kind === "rejected" ? result.rejection.reason : "accepted";

  it("sends to each leader once, and says so in order: opened, sent, acked", async () => {
    const { engine, leaders, submit, said, ended } = await start();
    const packet = newPacket(1);
    expect(submit(packet.bytes)).toEqual(acceptedOf(packet));
    await until("every acknowledgement", () => {
      engine.flushEvents();
      return ended() === 2;
    });
    expect(said[0]).toBe("1 opened k Beta");
    for (const identity of ["L0", "L1"]) {
      const ofLeader = said.filter((it) => it.endsWith(identity));
      expect(ofLeader).toEqual([`1 sent ${identity}`, `1 acked ${identity}`]);
    }
    expect(said).toHaveLength(5);
    await until("arrival", () => leaders.every(({ received }) => received.length === 1));
    for (const { received } of leaders)
      expect(received[0]?.bytes).toEqual(Buffer.from(packet.bytes));
  });

  it("refuses what is not valid, and sends and opens nothing of it", async () => {
    const { leaders, submit, said } = await start();
    const forged = Uint8Array.from(newPacket(2).bytes);
    forged[20] = (forged[20] ?? 0) ^ 1;
    const refused = [Uint8Array.of(1, 2, 3), newPacket(1, 999).bytes, forged].map((bytes) =>
      reasonOf(submit(bytes)),
    );
    expect(refused).toEqual(["undecodable", "tip_missing", "signature_invalid"]);
    expect(said).toEqual(["invalid true", "invalid true", "invalid true"]);
    expect(submit(newPacket(3).bytes).kind).toBe("accepted");
    await until("arrival", () => leaders.every(({ received }) => received.length === 1));
    expect(said[3]).toBe("1 opened k Beta");
  });

  it("refuses a transaction while no leader is connected", async () => {
    const { engine, submit, said } = await start();
    engine.usePlan({ slot: 2, send: [], warm: [] });
    expect([reasonOf(submit(newPacket(1).bytes)), said]).toEqual(["no_leader", []]);
  });

  it("accepts the same transaction again without sending it", async () => {
    const { leaders, submit, said } = await start();
    const packet = newPacket(1);
    submit(packet.bytes);
    expect(submit(packet.bytes, "other")).toEqual(acceptedOf(packet));
    expect(said.filter((it) => !it.includes("L"))).toEqual([
      "1 opened k Beta",
      "duplicate other 1",
    ]);
    submit(newPacket(2).bytes);
    await until("the next", () => leaders.every(({ received }) => received.length === 2));
  });

  it("answers a JSON-RPC call in its usual form as its transaction, with its id", async () => {
    const { engine, submit, said } = await start();
    const valid = newPacket(1);
    const bodyOf = (bytes: Uint8Array, method = "sendTransaction"): Uint8Array =>
      Buffer.from(
        JSON.stringify({ jsonrpc: "2.0", id: "a 1", method, params: [encodeBase64(bytes)] }),
      );
    const call = (body: Uint8Array) =>
      engine.submitCall?.({ ...submissionOf(body), maxRetries: null }) ?? null;
    if (engine.submitCall === null) {
      expect(choice.name).toBe("portable");
      return;
    }
    expect(call(bodyOf(valid.bytes))).toEqual({ id: '"a 1"', result: acceptedOf(valid) });
    engine.flushEvents();
    const other = newPacket(2, 999);
    expect(call(bodyOf(other.bytes))?.result).toEqual(submit(other.bytes));
    for (const body of [bodyOf(valid.bytes, "getHealth"), Buffer.from("{}"), new Uint8Array()])
      expect(call(body)).toBeNull();
    expect(said.filter((it) => !it.includes("L"))).toEqual([
      "1 opened k Beta",
      "invalid true",
      "invalid true",
    ]);
  });

  it("refuses as overloaded what no queue takes, and ends what waits too long", async () => {
    const { engine, submit, said, outcomes } = await start({
      leaders: 1,
      behaviour: { reading: "stalled", streamsMax: 2 },
      send: { queuePerLeader: 4, deliveryTtlMs: 300 },
    });
    const results = Array.from({ length: 12 }, (_, id) => reasonOf(submit(newPacket(id).bytes)));
    expect(new Set(results)).toEqual(new Set(["accepted", "overloaded"]));
    const accepted = results.filter((it) => it === "accepted").length;
    expect(said.filter((it) => it.includes("opened"))).toHaveLength(accepted);
    await until("the end of what waited", () => {
      engine.flushEvents();
      return outcomes.filter(({ kind }) => kind !== "sent").length === accepted;
    });
    const dropped = outcomes.filter(({ reason }) => reason === "leader_saturated");
    expect(dropped).toHaveLength(accepted - 2);
  });

  it("sends the best-paid of those that wait first", async () => {
    const { leaders, submit } = await start({
      leaders: 1,
      behaviour: { reading: "stalled", streamsMax: 2 },
    });
    const [leader] = leaders;
    for (const id of [1, 2]) submit(newPacket(id).bytes);
    const waiting = [5_000, 9_000, 7_000].map((lamports, index) => newPacket(3 + index, lamports));
    for (const { bytes } of waiting) submit(bytes);
    leader?.leader.setBehaviour({ reading: "all" });
    await until("all of them", () => leader?.received.length === 5);
    const order = leader?.received.slice(2).map(({ bytes }) => bytes.toString("hex"));
    const expected = [1, 2, 0].map((index) => Buffer.from(waiting[index]?.bytes ?? []));
    expect(order).toEqual(expected.map((bytes) => bytes.toString("hex")));
  });

  it("ranks a copy among first sends that wait", async () => {
    const { leaders, engine, submit, outcomes } = await start({
      leaders: 1,
      behaviour: { reading: "stalled", streamsMax: 2 },
    });
    const [leader] = leaders;
    for (const id of [1, 2]) submit(newPacket(id).bytes);
    const waiting = [5_000, 9_000, 7_000, 9_001].map((lamports, index) => {
      return { ...newPacket(3 + index, lamports), offeredLamports: lamports };
    });
    for (const { bytes } of waiting.slice(0, 2)) submit(bytes);
    const queued: boolean[] = [];
    const to = {
      ordinal: 1,
      wants: () => true,
      mayLeave: () => true,
      accepted: (_: Target, is: boolean) => queued.push(is),
    };
    for (const packet of waiting.slice(2)) expect(engine.resend(packet, to)).toBe(1);
    expect(queued).toEqual([true, true]);
    leader?.leader.setBehaviour({ reading: "all" });
    await until("all of them", () => leader?.received.length === 6);
    const order = leader?.received.slice(2).map(({ bytes }) => bytes.toString("hex"));
    const expected = [3, 1, 2, 0].map((index) => Buffer.from(waiting[index]?.bytes ?? []));
    expect(order).toEqual(expected.map((bytes) => bytes.toString("hex")));
    await until("both copies sent", () => {
      engine.flushEvents();
      return outcomes.filter(({ resend, kind }) => resend === 1 && kind === "sent").length === 2;
    });
  });

  it("sends a transaction again to the leaders that are asked for, under its round", async () => {
    const { engine, leaders, submit, outcomes, ended } = await start();
    const { bytes } = newPacket(1);
    submit(bytes);
    await until("arrival", () => leaders.every(({ received }) => received.length === 1));
    await until("every acknowledgement", () => {
      engine.flushEvents();
      return ended() === 2;
    });
    const accepted: string[] = [];
    const packet = createPacket(1, bytes, "acme", systemClock.nowNs(), null, 0);
    const count = engine.resend(packet, {
      ordinal: 3,
      wants: ({ identity }) => identity === "L1",
      mayLeave: () => true,
      accepted: ({ identity }) => void accepted.push(identity),
    });
    expect([count, accepted]).toEqual([1, ["L1"]]);
    await until("the copy", () => leaders[1]?.received.length === 2);
    await until("its acknowledgement", () => {
      engine.flushEvents();
      return ended() === 3;
    });
    expect(outcomes.filter(({ resend }) => resend === 3).map(({ kind }) => kind)).toEqual([
      "sent",
      "acked",
    ]);
    expect(leaders[0]?.received).toHaveLength(1);
  });

  it("renews its knowledge of a transaction for a copy, unless a newer one left", async () => {
    const { engine, submit } = await start();
    const { bytes } = newPacket(1);
    const sinceNs = systemClock.nowNs();
    submit(bytes);
    const nowNs = systemClock.nowNs();
    expect(engine.renew(bytes, nowNs, nowNs + NS_PER_S)).toBe(true);
    expect(engine.renew(bytes, sinceNs, nowNs + 2 * NS_PER_S)).toBe(false);
  });

  it("sends a transaction that it forgot as a new one", async () => {
    const { engine, submit, said } = await start();
    const { bytes } = newPacket(1);
    const sinceNs = systemClock.nowNs();
    const opened = () => {
      submit(bytes);
      engine.flushEvents();
      return said.filter((it) => it.includes(" opened ")).length;
    };
    expect(opened()).toBe(1);
    engine.forget(bytes, sinceNs);
    expect(opened()).toBe(1);
    engine.forget(bytes, systemClock.nowNs());
    expect(opened()).toBe(2);
  });

  it("presents a new identity without losing anything", async () => {
    const { engine, identity, leaders, submit, said, ended } = await start();
    const next = freshIdentity();
    engine.useIdentity(next);
    let id = 0;
    const isNew = ({ received }: TestLeader): boolean =>
      Buffer.from(received.at(-1)?.peerPubkey ?? []).equals(next.publicKey);
    await until("the new identity at every leader", () => {
      id += 1;
      expect(submit(newPacket(id).bytes).kind).toBe("accepted");
      engine.flushEvents();
      return leaders.every(isNew);
    });
    expect(Buffer.from(identity.publicKey).equals(next.publicKey)).toBe(false);
    await until("every acknowledgement", () => {
      engine.flushEvents();
      return ended() === 2 * id;
    });
    expect(said.filter((it) => it.includes("acked"))).toHaveLength(2 * id);
    expect(engine.sender.outdatedCount).toBe(0);
  });

  it("accepts nothing once it stops, and every delivery has exactly one end", async () => {
    const { engine, submit, outcomes, stop } = await start({
      behaviour: { reading: "stalled", streamsMax: 4 },
    });
    const count = 10;
    for (let id = 1; id <= count; id += 1)
      expect(submit(newPacket(id).bytes).kind).toBe("accepted");
    await stop();
    expect(reasonOf(submit(newPacket(99).bytes))).toBe("overloaded");
    const finished = outcomes.filter(({ kind }) => kind !== "sent");
    expect(new Set(finished.map((it) => `${it.packetId} ${it.identity}`)).size).toBe(2 * count);
    expect(finished).toHaveLength(2 * count);
    expect(new Set(finished.map(({ reason, kind }) => reason ?? kind))).toEqual(
      new Set(["acked", "shutting_down"]),
    );
    expect(engine.sender.liveCount).toBe(0);
  });
});
