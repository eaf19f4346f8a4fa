/**
 * Hostile clients of an edge that serves QUIC: each floods it in another way, while a client that
 * keeps to its limits lands one transaction after the other. Both are on quiche, another QUIC stack
 * than the edge's.
 */

import { randomBytes } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { encodeKey } from "../../src/core/encoding.ts";
import { REJECTIONS } from "../../src/core/errors.ts";
import { loadNative } from "../../src/native/load.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { tlsIdentityOf } from "../../src/send/portable/certificate.ts";
import { quiche, quicheConfig } from "../../src/send/portable/quiche.ts";
import { type Flow, startFlow, THREADS, untilResponse } from "../support/flow.ts";
import { seriesValue } from "../support/prometheus.ts";
import { connectTouchdown, type TouchdownClient } from "../support/touchdown-client.ts";
import { until } from "../support/wait.ts";

const isBuilt = loadNative().kind === "loaded";
const ACCEPTED = 1;
const CONNECTIONS = 300;
const PER_ADDRESS = 100;
const PER_ACCOUNT = 20;
/** Above these an edge asks for a proof of the address: docs/quic.md. */
const HANDSHAKES_UNPROVED = 64;
const STREAMS = 1_000;
const DATAGRAM_BYTES = 1350;

describe.skipIf(!isBuilt)("an edge under floods of QUIC clients", () => {
  const good = freshIdentity();
  const hostile = freshIdentity();
  const hostileToml = keyOf(hostile, "hostile");
  let flow: Flow;
  let client: TouchdownClient;
  let hasStopped = false;
  const clients: TouchdownClient[] = [];

  beforeAll(async () => {
    flow = await startFlow({
      leaderCount: 2,
      keys: `\n${keyOf(good, "good")}\n${hostileToml}`,
      edge: {
        http: { threads: Math.max(1, THREADS), read_timeout: "1s" },
        // Room for a whole flood: what a leader's full queue drops is not sent again.
        send: { engine: "native", queue_per_leader: 2 * STREAMS, delivery_ttl: "10s" },
        quic: {
          listen: "127.0.0.1:0",
          connections: CONNECTIONS,
          connections_per_address: PER_ADDRESS,
          connections_per_account: PER_ACCOUNT,
        },
        landing: { resends_per_second: 0 },
      },
    });
  });
  beforeEach(async () => {
    client = await connected(good);
  });
  afterEach(async () => {
    for (const each of clients.splice(0)) each.close();
    if (hasStopped) return;
    await untilResponse(
      "their ends",
      () => value("touchdown_quic_connections"),
      (count) => count === 0,
    );
    expect(await value("touchdown_quic_panics_total")).toBe(0);
  });
  afterAll(() => flow?.stop());

  const address = () => flow.sandbox.edge.quicAddress ?? "no address";

  async function connected(identity: Identity): Promise<TouchdownClient> {
    const opened = await connectTouchdown(address(), identity);
    clients.push(opened);
    return opened;
  }

  async function value(name: string, labels = {}): Promise<number> {
    return seriesValue(await flow.metrics(), name, labels) ?? 0;
  }

  const requests = (outcome: string) => value("touchdown_requests_total", { outcome });

  /** Submits a transaction, and waits until a leader has it. */
  async function land(): Promise<void> {
    const { bytes } = flow.tipped();
    expect(await client.submit(bytes)).toMatchObject({ state: ACCEPTED, code: 0 });
    await until("delivery", () => flow.deliveriesOf(bytes) > 0);
  }

  /** Lands transactions until the flood is over. */
  async function whileLanding(flood: () => Promise<unknown>): Promise<void> {
    let isOver = false;
    const flooding = flood().finally(() => {
      isOver = true;
    });
    const landing = async () => {
      do await land();
      while (!isOver);
    };
    await Promise.all([flooding, landing()]);
  }

  it("asks for a proof of the address above a number of handshakes that never finish", async () => {
    const retries = await value("touchdown_quic_retries_total");
    await whileLanding(() => sendFirstPackets(address(), 1_000));
    expect(await value("touchdown_quic_handshakes")).toBeLessThanOrEqual(HANDSHAKES_UNPROVED);
    expect(await value("touchdown_quic_retries_total")).toBeGreaterThan(retries);
    // A client that proves it connects meanwhile.
    expect((await (await connected(good)).submit(flow.tipped().bytes)).state).toBe(ACCEPTED);
    await untilResponse(
      "the end of the handshakes",
      () => value("touchdown_quic_handshakes"),
      (count) => count === 0,
    );
    expect(await value("touchdown_quic_handshakes_refused_total")).toBeGreaterThan(0);
  });

  it("closes the connections of an account above its number", async () => {
    const before = await requests("rate_limited");
    const opened: TouchdownClient[] = [];
    await whileLanding(async () => {
      for (let count = 0; count < 2 * PER_ACCOUNT; count += 1) {
        opened.push(await connected(hostile));
      }
    });
    const closed = () => opened.filter((each) => each.closeCode() !== null);
    await until("the ends", () => closed().length === PER_ACCOUNT);
    const codes = new Set(closed().map((each) => each.closeCode()));
    expect([...codes]).toEqual([REJECTIONS.rate_limited.quicCode]);
    expect(await value("touchdown_quic_connections")).toBe(PER_ACCOUNT + 1);
    expect((await requests("rate_limited")) - before).toBe(PER_ACCOUNT);
  });

  it.each([
    ["accepted", "valid transactions", () => flow.tipped().bytes],
    ["undecodable", "nothing", () => Buffer.alloc(0)],
    ["too_large", "more than a transaction has", () => Buffer.alloc(4_097, 1)],
  ] as const)("counts as %s each of many streams with %s", async (outcome, _, bytes) => {
    const flooding = await connected(hostile);
    let landed = 0;
    const before = await requests(outcome);
    await whileLanding(async () => {
      for (let count = 0; count < STREAMS; count += 1) await flooding.send(bytes());
      landed = await untilResponse(
        "every decision",
        async () => (await requests(outcome)) - before,
        (count) => count >= STREAMS,
      );
    });
    expect(landed).toBeGreaterThanOrEqual(STREAMS);
    expect(flooding.closeCode()).toBeNull();
  });

  it("stops streams that are never finished, and grants no more meanwhile", async () => {
    const flooding = await connected(hostile);
    const before = await requests("undecodable");
    // With the place of its control stream, which it does not open.
    const halves = Array.from({ length: 65 }, () => flooding.open(Buffer.of(1, 2, 3), false));
    expect(() => flooding.open(Buffer.of(1), false)).toThrow();
    // A transaction after them, so that the edge has them all.
    const accepted = await requests("accepted");
    await flooding.send(flow.tipped().bytes);
    await untilResponse(
      "its decision",
      () => requests("accepted"),
      (count) => count > accepted,
    );
    await land();
    const isGranted = isOpened(flooding);
    // On a slow machine their time may be over.
    const isStopped = (await requests("undecodable")) > before;
    expect(isGranted && !isStopped).toBe(false);
    await whileLanding(() =>
      untilResponse(
        "every refusal",
        async () => (await requests("undecodable")) - before,
        (count) => count >= halves.length,
      ),
    );
    const verdict = await flooding.verdict(halves[0] ?? 0);
    expect(verdict.code).toBe(REJECTIONS.undecodable.quicCode);
  });

  it("serves on when its identity changes meanwhile", async () => {
    const flooding = await connected(hostile);
    const before = await value("touchdown_identity_changes_total");
    await whileLanding(async () => {
      for (let count = 0; count < STREAMS; count += 1) {
        if (count === STREAMS / 2) flow.changeIdentity();
        await flooding.send(flow.tipped().bytes);
      }
      await untilResponse(
        "the new identity everywhere",
        () => value("touchdown_connections_outdated"),
        (count) => count === 0,
      );
    });
    await land();
    expect(await value("touchdown_identity_changes_total")).toBe(before + 1);
    expect(flooding.closeCode()).toBeNull();
  });

  it("closes a flooding client whose key is revoked", async () => {
    const flooding = await connected(hostile);
    const text = readFileSync(flow.keysFile, "utf8");
    await whileLanding(async () => {
      for (let count = 0; flooding.closeCode() === null; count += 1) {
        if (count === STREAMS / 4) {
          writeFileSync(flow.keysFile, text.replace(hostileToml, ""));
          await flow.sandbox.edge.reloadKeys();
        }
        await sendUnlessClosed(flooding, flow.tipped().bytes);
      }
    });
    expect(flooding.closeCode()).toBe(REJECTIONS.unauthorized.quicCode);
    const late = await connected(hostile);
    await until("the end", () => late.closeCode() !== null);
    writeFileSync(flow.keysFile, text);
    await flow.sandbox.edge.reloadKeys();
  });

  it("delivers what it accepted when it stops meanwhile, and closes with a code", async () => {
    const flooding = await connected(hostile);
    const accepted: Uint8Array[] = [];
    let stopping: Promise<void> | null = null;
    const flood = async () => {
      while (flooding.closeCode() === null) await sendUnlessClosed(flooding, flow.tipped().bytes);
    };
    const submitting = async () => {
      while (client.closeCode() === null) {
        const { bytes } = flow.tipped();
        const verdict = client.submit(bytes).catch(() => null);
        const closed = until("the end", () => client.closeCode() !== null).then(() => null);
        if ((await Promise.race([verdict, closed]))?.state === ACCEPTED) accepted.push(bytes);
        if (accepted.length === 20) stopping ??= flow.sandbox.edge.stop();
      }
    };
    await Promise.all([flood(), submitting()]);
    await stopping;
    hasStopped = true;
    const code = REJECTIONS.overloaded.quicCode;
    expect([client.closeCode(), flooding.closeCode()]).toEqual([code, code]);
    await until("every delivery", () => accepted.every((it) => flow.deliveriesOf(it) > 0));
  });
});

function keyOf({ publicKey }: Identity, account: string): string {
  const key = `public_key = "${encodeKey(publicKey)}"`;
  return `[[keys]]\n${key}\naccount = "${account}"\nplan = "Wide"\n`;
}

/** Opens a stream that it does not finish; false if the edge grants none. */
function isOpened(client: TouchdownClient): boolean {
  try {
    client.open(Buffer.of(1), false);
    return true;
  } catch {
    return false;
  }
}

/** A closed client throws. */
async function sendUnlessClosed(client: TouchdownClient, bytes: Uint8Array): Promise<void> {
  try {
    await client.send(bytes);
  } catch {
    // Its code is read later.
  }
}

/** The first packets of so many clients from many addresses of loopback, which say nothing more. */
async function sendFirstPackets(to: string, count: number): Promise<void> {
  const [host = "", port = ""] = to.split(":");
  const remote = { host, port: Number(port) };
  const config = quicheConfig(tlsIdentityOf(freshIdentity()), false);
  config.setApplicationProtos(["touchdown/1"]);
  const sockets = await Promise.all(Array.from({ length: 50 }, (_, index) => boundTo(index)));
  const datagram = Buffer.alloc(DATAGRAM_BYTES);
  for (let number = 0; number < count; number += 1) {
    const socket = sockets[number % sockets.length];
    if (socket === undefined) continue;
    const local = { host: socket.address().address, port: socket.address().port };
    const quic = quiche.Connection.connect("localhost", randomBytes(16), local, remote, config);
    const [size] = quic.send(datagram) ?? [0];
    await new Promise<void>((resolve, reject) => {
      const done = (error: Error | null) => (error === null ? resolve() : reject(error));
      socket.send(Buffer.from(datagram.subarray(0, size)), remote.port, remote.host, done);
    });
  }
  for (const socket of sockets) socket.close();
}

async function boundTo(index: number): Promise<Socket> {
  const socket = createSocket("udp4");
  // What the edge answers is not read.
  socket.on("message", () => undefined);
  socket.bind(0, `127.1.0.${index + 1}`);
  await once(socket, "listening");
  return socket;
}
