/**
 * `touchdown/1` as its clients see it: an edge with the native engine, and clients on another QUIC
 * stack (quiche) that write and read the bytes of docs/quic.md.
 */

import { createHmac, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { clientKeyOf } from "../../src/accounts/keys/client-key.ts";
import { createKey, revokeKey } from "../../src/accounts/keys/edit-keys-file.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { REJECTIONS } from "../../src/core/errors.ts";
import { loadNative } from "../../src/native/load.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { createAuthority, type Issued } from "../support/authority.ts";
import {
  FEW,
  type Flow,
  fewKey,
  SILENT,
  startFlow,
  THREADS,
  untilResponse,
  WIDE_KEY,
} from "../support/flow.ts";
import { seriesValue } from "../support/prometheus.ts";
import {
  connectTouchdown,
  type Frame,
  readVerdict,
  type TouchdownClient,
} from "../support/touchdown-client.ts";
import { until } from "../support/wait.ts";

const isBuilt = loadNative().kind === "loaded";
const LIMITS = 0x81;
const TIPS = 0x82;
const DRAINING = 0x83;
const RECEIPT = 0x84;
const ACCEPTED = 1;
const PROCESSED = 5;
const LANDED = 6;

const clients: TouchdownClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

async function connected(address: string | null, identity?: Identity): Promise<TouchdownClient> {
  const client = await connectTouchdown(address ?? "no address", identity);
  clients.push(client);
  return client;
}

/** Says HELLO with this API key, and waits for the limits and the tips. */
async function greeted(client: TouchdownClient, key: string, wants = 0) {
  const frames = client.hello(key, wants);
  await until("the limits and the tips", () => frames().length >= 2);
  return frames;
}

const typesOf = (frames: readonly Frame[]): number[] => frames.map(({ type }) => type);
const flagged = (flags: number, bytes: Uint8Array) => Buffer.concat([Buffer.of(flags), bytes]);

describe.skipIf(!isBuilt)("an edge that serves touchdown/1", () => {
  const known = freshIdentity();
  let flow: Flow;
  beforeAll(async () => {
    const publicKey = encodeKey(known.publicKey);
    flow = await startFlow({
      leaderCount: 2,
      keys: `\n[[keys]]\npublic_key = "${publicKey}"\naccount = "acme"\nplan = "Wide"\n`,
      edge: {
        http: { threads: Math.max(1, THREADS), read_timeout: "1s" },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0" },
        landing: { resends_per_second: 0 },
      },
    });
  });
  afterAll(() => flow?.stop());

  const address = () => flow.sandbox.edge.quicAddress;

  it("answers a transaction, sends it to the leaders and has its receipt", async () => {
    const client = await connected(address(), known);
    const { bytes, signature } = flow.tipped();
    const verdict = await client.submit(bytes);
    expect(verdict).toMatchObject({ state: ACCEPTED, code: 0, bits: 0, slot: 0 });
    expect(verdict.signature).toEqual(Buffer.from(bytes.subarray(1, 65)));
    await until("delivery", () => flow.deliveriesOf(bytes) > 0);
    const receipt = await untilResponse(
      "the receipt",
      () => flow.receipt(signature, WIDE_KEY),
      ({ status }) => status === 200,
    );
    expect(receipt.json["signature"]).toBe(signature);
    // A repetition over HTTP is the same transaction, and one over QUIC too.
    expect((await flow.postRaw(bytes)).status).toBe(200);
    expect((await client.submit(flagged(0x41, bytes))).code).toBe(0);
  });

  it("knows a client by the API key in its first frame, with the limits of the key", async ({
    task,
  }) => {
    const key = fewKey(task.result?.retryCount ?? 0);
    const client = await connected(address());
    const frames = await greeted(client, key);
    expect(typesOf(frames())).toEqual([LIMITS, TIPS]);
    const [limits] = frames();
    expect(limits?.content.readDoubleLE(0)).toBeCloseTo(0.001);
    expect([8, 12, 16, 20].map((at) => limits?.content.readUInt32LE(at))).toEqual([
      FEW,
      FEW,
      64,
      4096,
    ]);
    const credits: number[] = [];
    for (let count = 0; count < FEW; count += 1) {
      credits.push((await client.submit(flow.tipped().bytes)).credit);
    }
    expect(credits).toEqual(Array.from({ length: FEW }, (_, index) => FEW - 1 - index));
    // One limit with HTTP.
    expect((await flow.postRaw(flow.tipped().bytes, key)).status).toBe(429);
  });

  it("knows a client by the certificate that follows from an API key", async () => {
    const { token } = createKey(flow.keysFile, { account: "derived", plan: "Few" });
    await flow.sandbox.edge.reloadKeys();
    const seed = createHmac("sha256", token).update("touchdown/1 client certificate").digest();
    const identity = { seed, publicKey: clientKeyOf(token) };
    const client = await connected(address(), identity);
    expect(await client.submit(flow.tipped().bytes)).toMatchObject({ code: 0, credit: FEW - 1 });
    // One limit with the API key.
    const other = await connected(address());
    await greeted(other, token);
    expect((await other.submit(flow.tipped().bytes)).credit).toBe(FEW - 2);
    revokeKey(flow.keysFile, token);
    await flow.sandbox.edge.reloadKeys();
    await until("the ends", () => client.closeCode() !== null && other.closeCode() !== null);
    expect(client.closeCode()).toBe(REJECTIONS.unauthorized.quicCode);
  });

  it.each([
    ["undecodable", () => Buffer.of(1, 2, 3)],
    ["undecodable", () => Buffer.alloc(0)],
    ["undecodable", () => Buffer.of(0x3f, 1)],
    ["tip_missing", () => flow.tipped({ tips: [] }).bytes],
    ["signature_invalid", () => withBrokenSignature(flow.tipped().bytes)],
    ["invalid_request", () => flagged(0x44, flow.tipped().bytes)],
    ["too_large", () => Buffer.alloc(4097, 1)],
  ] as const)("answers %s with its code", async (reason, bytes) => {
    const client = await connected(address(), known);
    const verdict = await client.submit(bytes());
    expect(verdict).toMatchObject({ state: 0, code: REJECTIONS[reason].quicCode });
    // The connection goes on.
    expect((await client.submit(flow.tipped().bytes)).state).toBe(ACCEPTED);
  });

  it("answers undecodable to half a transaction, after its time", async () => {
    const client = await connected(address(), known);
    const stream = client.open(flow.tipped().bytes.subarray(0, 50), false);
    const verdict = await client.verdict(stream);
    expect(verdict.code).toBe(REJECTIONS.undecodable.quicCode);
  });

  it("takes unidirectional streams beside, without an answer", async () => {
    const client = await connected(address(), known);
    const { bytes } = flow.tipped();
    await client.send(flagged(0x40, bytes));
    await until("delivery", () => flow.deliveriesOf(bytes) > 0);
  });

  it.each([
    ["unauthorized", "an unknown API key", () => hello("an-unknown-key-of-24-chars")],
    ["unauthorized", "a transaction before the client is known", () => flow.tipped().bytes],
    ["invalid_request", "a frame of another type", () => Buffer.of(0, 9, 0, 0, 0)],
    ["invalid_request", "another version", () => Buffer.of(0, 1, 0, 2, 0, 2, 0)],
  ] as const)("closes with %s for %s", async (reason, _, bytes) => {
    const client = await connected(address());
    client.open(bytes(), true);
    await until("the end", () => client.closeCode() !== null);
    expect(client.closeCode()).toBe(REJECTIONS[reason].quicCode);
  });

  it("closes the clients of an API key that is taken out of the file", async ({ task }) => {
    const number = task.result?.retryCount ?? 0;
    const key = fewKey(2 + number);
    const client = await connected(address());
    await greeted(client, key);
    const text = readFileSync(flow.keysFile, "utf8");
    writeFileSync(flow.keysFile, text.replace(key, `another-key-in-its-place-${number}`));
    await flow.sandbox.edge.reloadKeys();
    await until("the end", () => client.closeCode() !== null);
    expect(client.closeCode()).toBe(REJECTIONS.unauthorized.quicCode);
  });

  it("goes on while the identity changes", async () => {
    const client = await connected(address(), known);
    expect((await client.submit(flow.tipped().bytes)).state).toBe(ACCEPTED);
    const changes = async () =>
      seriesValue(await flow.metrics(), "touchdown_identity_changes_total") ?? 0;
    const before = await changes();
    flow.changeIdentity();
    const outdated = async () => {
      expect((await client.submit(flow.tipped().bytes)).state).toBe(ACCEPTED);
      return seriesValue(await flow.metrics(), "touchdown_connections_outdated");
    };
    await untilResponse("the new identity everywhere", outdated, (count) => count === 0);
    expect(await changes()).toBe(before + 1);
  });

  it("counts what it answers as requests", async () => {
    const counts = async () => {
      const metrics = await flow.metrics();
      return ["accepted", "tip_missing"].map((outcome) =>
        seriesValue(metrics, "touchdown_requests_total", { outcome }),
      );
    };
    const [accepted = 0, refused = 0] = await counts();
    const client = await connected(address(), known);
    for (let sent = 0; sent < 5; sent += 1) await client.submit(flow.tipped().bytes);
    await client.submit(flow.tipped({ tips: [] }).bytes);
    expect(await counts()).toEqual([accepted + 5, refused + 1]);
  });
});

describe.skipIf(!isBuilt)("an edge of a simulated cluster, with a certificate", () => {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-quic-"));
  const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  const authority = createAuthority();
  let sandbox: Sandbox;
  const write = (): string => {
    const { certificate, key } = authority.issue(Date.now() - 60_000, Date.now() + 5e9);
    writeFileSync(files.certificate, certificate);
    writeFileSync(files.key, key);
    return new X509Certificate(certificate).fingerprint256;
  };
  let fingerprint = "";
  const start = (): Promise<Sandbox> =>
    startSandbox({
      port: 0,
      log: SILENT,
      edge: {
        http: { threads: Math.max(1, THREADS), tls: files },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0", drain_to: "other.example.com:8009" },
      },
    });
  beforeAll(async () => {
    fingerprint = write();
    sandbox = await start();
  });
  afterAll(async () => {
    await sandbox?.stop();
    rmSync(folder, { recursive: true });
  });

  const address = () => sandbox.edge.quicAddress;
  const presented = ({ certificates }: TouchdownClient): string =>
    new X509Certificate(Buffer.from(certificates[0] ?? [])).fingerprint256;

  it("presents the operator's certificate, and another one once it is read again", async () => {
    expect(presented(await connected(address()))).toBe(fingerprint);
    fingerprint = write();
    await sandbox.edge.reloadCertificates();
    expect(presented(await connected(address()))).toBe(fingerprint);
  });

  it("presents another certificate than to HTTP clients, where it is given one", async () => {
    const ofQuic = authority.issue(Date.now() - 60_000, Date.now() + 5e9);
    const quicFiles = { certificate: join(folder, "quic.pem"), key: join(folder, "quic.key") };
    const writeIssued = ({ certificate, key }: Issued): string => {
      writeFileSync(quicFiles.certificate, certificate);
      writeFileSync(quicFiles.key, key);
      return new X509Certificate(certificate).fingerprint256;
    };
    const own = writeIssued(ofQuic);
    const other = await startSandbox({
      port: 0,
      log: SILENT,
      edge: {
        http: { threads: Math.max(1, THREADS), tls: files },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0", tls: quicFiles },
      },
    });
    try {
      const { edge } = other;
      const overHttp = async (): Promise<string> => {
        const { hostname, port } = new URL(other.url);
        const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
        await once(socket, "secureConnect");
        const found = socket.getPeerX509Certificate()?.fingerprint256 ?? "";
        socket.destroy();
        return found;
      };
      expect(presented(await connected(edge.quicAddress))).toBe(own);
      expect(await overHttp()).toBe(fingerprint);
      const next = writeIssued(authority.issue(Date.now() - 60_000, Date.now() + 5e9));
      edge.reloadCertificates();
      expect(presented(await connected(edge.quicAddress))).toBe(next);
      expect(await overHttp()).toBe(fingerprint);
      // One that is wrong keeps no other from being read, and each of them is named.
      const before = fingerprint;
      writeFileSync(files.key, "");
      const last = writeIssued(authority.issue(Date.now() - 60_000, Date.now() + 5e9));
      expect(() => edge.reloadCertificates()).toThrow(/^http\.tls\.key: [^;]*$/);
      expect(presented(await connected(edge.quicAddress))).toBe(last);
      writeFileSync(quicFiles.key, "");
      expect(() => edge.reloadCertificates()).toThrow(/^http\.tls\.key: .*; quic\.tls\.key: /);
      expect(presented(await connected(edge.quicAddress))).toBe(last);
      expect(await overHttp()).toBe(before);
      fingerprint = write();
    } finally {
      await other.stop();
    }
    sandbox.edge.reloadCertificates();
  });

  it("has one for QUIC clients alone, and speaks HTTP without TLS then", async () => {
    const quic = { listen: "127.0.0.1:0", tls: files };
    const http = { threads: Math.max(1, THREADS) };
    const other = await startSandbox({
      ...{ port: 0, log: SILENT },
      edge: { http, send: { engine: "native" }, quic },
    });
    try {
      expect(presented(await connected(other.edge.quicAddress))).toBe(fingerprint);
      expect((await fetch(`${other.url}/ping`)).ok).toBe(true);
    } finally {
      await other.stop();
    }
  });

  it("answers when the transaction has landed", async () => {
    const client = await connected(address());
    await greeted(client, sandbox.key);
    const bytes = sandbox.transaction();
    const verdict = await client.submit(flagged(0x42, bytes));
    expect(verdict).toMatchObject({ state: LANDED, code: 0, bits: 0 });
    expect(verdict.slot).toBeGreaterThan(0);
    expect(verdict.microseconds).toBeGreaterThan(1000);
    expect(verdict.signature).toEqual(Buffer.from(bytes.subarray(1, 65)));
    // A repetition does not wait.
    expect((await client.submit(flagged(0x42, bytes))).state).toBe(ACCEPTED);
  });

  it("sends receipts to the clients that want them, of any protocol", async () => {
    const client = await connected(address());
    const frames = await greeted(client, sandbox.key, 1);
    const bytes = sandbox.transaction();
    const sender = await connected(address());
    await greeted(sender, sandbox.key);
    await sender.send(bytes);
    const receiptsOf = () =>
      frames()
        .filter(({ type }) => type === RECEIPT)
        .map(({ content }) => readVerdict(content))
        .filter(({ signature }) => signature.equals(bytes.subarray(1, 65)));
    await until("the landing", () => receiptsOf().some(({ state }) => state === LANDED));
    const states = receiptsOf().map(({ state }) => state);
    expect(states.every((state) => state === PROCESSED || state === LANDED)).toBe(true);
    expect(receiptsOf().at(-1)?.slot).toBeGreaterThan(0);
  });

  it("tells clients where to go when it drains, and serves on", async () => {
    const drained = await start();
    const client = await connected(drained.edge.quicAddress);
    const frames = await greeted(client, drained.key);
    drained.edge.drain();
    await until("the frame", () => typesOf(frames()).includes(DRAINING));
    expect(String(frames().at(-1)?.content)).toBe("other.example.com:8009");
    expect((await client.submit(drained.transaction())).state).toBe(ACCEPTED);
    await drained.stop();
    await until("the end", () => client.closeCode() !== null);
    expect(client.closeCode()).toBe(REJECTIONS.overloaded.quicCode);
  });
});

function hello(key: string): Buffer {
  return Buffer.concat([Buffer.of(0, 1, 0, 2 + key.length, 0, 1, 0), Buffer.from(key)]);
}

function withBrokenSignature(bytes: Uint8Array): Buffer {
  const broken = Buffer.from(bytes);
  broken[40] = (broken[40] ?? 0) ^ 1;
  return broken;
}
