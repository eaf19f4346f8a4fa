/**
 * Submission over QUIC as a client of a validator sees it: an edge with the native engine, and
 * clients on another QUIC stack (quiche) that send to it as to a leader.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { encodeKey } from "../../src/core/encoding.ts";
import { REJECTIONS } from "../../src/core/errors.ts";
import { loadNative } from "../../src/native/load.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { CLOSED, type Transport } from "../../src/send/transport.ts";
import { connectTo, startTransport } from "../send/loopback.ts";
import { type Flow, startFlow, THREADS, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

const isBuilt = loadNative().kind === "loaded";

function publicKeyToml({ publicKey }: Identity, plan: string, account = "acme"): string {
  const key = `public_key = "${encodeKey(publicKey)}"`;
  return `[[keys]]\n${key}\naccount = "${account}"\nplan = "${plan}"\n`;
}

describe.skipIf(!isBuilt)("an edge that serves QUIC clients", () => {
  const known = freshIdentity();
  const few = freshIdentity();
  const revoked = freshIdentity();
  let flow: Flow;
  const transports: Transport[] = [];
  const start = (): Promise<Flow> => {
    const keys = [
      publicKeyToml(known, "Wide"),
      publicKeyToml(few, "Few", "few-quic"),
      publicKeyToml(revoked, "Wide", "revoked"),
    ];
    return startFlow({
      leaderCount: 2,
      keys: `\n${keys.join("\n")}`,
      edge: {
        http: { threads: Math.max(1, THREADS) },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0" },
        landing: { resends_per_second: 0 },
      },
    });
  };
  beforeAll(async () => {
    flow = await start();
  });
  afterEach(async () => {
    for (const transport of transports.splice(0)) await transport.stop();
  });
  afterAll(() => flow?.stop());

  /** Connects as this client. */
  async function connected(identity: Identity, to = flow) {
    const transport = await startTransport(identity);
    transports.push(transport);
    return connectTo(transport, to.sandbox.edge.quicAddress ?? "no address");
  }

  async function admitted(identity: Identity, to = flow) {
    const client = await connected(identity, to);
    await until("stream credit", () => client.connection.admitted);
    return client;
  }

  async function rejections(reason: string): Promise<number> {
    return seriesValue(await flow.metrics(), "touchdown_requests_total", { outcome: reason }) ?? 0;
  }

  /** All transactions that were accepted or refused so far. */
  async function decided(): Promise<number> {
    const family = (await flow.metrics()).get("touchdown_requests_total");
    return (family?.samples ?? []).reduce((sum, { value }) => sum + value, 0);
  }

  it("takes a transaction on a stream, sends it to the leaders and has its receipt", async () => {
    const { connection } = await admitted(known);
    const { bytes, signature } = flow.tipped();
    expect(connection.send(bytes)).toBeGreaterThanOrEqual(0);
    await until("delivery", () => flow.deliveriesOf(bytes) > 0);
    const receipt = await untilResponse(
      "the receipt",
      () => flow.receipt(signature, WIDE_KEY),
      ({ status }) => status === 200,
    );
    expect(receipt.json["signature"]).toBe(signature);
    // Over HTTP it is the same transaction.
    expect((await flow.postRaw(bytes)).status).toBe(200);
    // Those of other tests may not be closed yet.
    await untilResponse(
      "one connection",
      async () => seriesValue(await flow.metrics(), "touchdown_quic_connections"),
      (open) => open === 1,
    );
  });

  it("decides on hundreds of one connection, once each", async () => {
    const { connection } = await admitted(known);
    const before = await decided();
    for (let count = 0; count < 500; count += 1) {
      const { bytes } = flow.tipped();
      await until("credit", () => connection.send(bytes) >= 0);
    }
    await untilResponse("every decision", decided, (count) => count - before >= 500);
    expect((await decided()) - before).toBe(500);
  });

  it("closes a client whose key is not known with the code of unauthorized", async () => {
    const { cause } = await connected(freshIdentity());
    await until("the end", () => cause() !== null);
    expect(cause()).toEqual({ kind: "app", code: REJECTIONS.unauthorized.quicCode });
  });

  it("refuses invalid transactions for the account, without a word on the stream", async () => {
    const { connection } = await admitted(known);
    const before = await rejections("undecodable");
    connection.send(Buffer.from("no transaction"));
    await untilResponse(
      "the refusal",
      () => rejections("undecodable"),
      (count) => count > before,
    );
    expect(connection.established).toBe(true);
  });

  it("grants no more streams than the account's limit admits", async () => {
    const { connection } = await admitted(few);
    const before = await decided();
    let sent = 0;
    while (sent < 100 && connection.send(flow.tipped().bytes) >= 0) {
      sent += 1;
      // Acknowledgements and credit arrive meanwhile.
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(sent).toBeLessThanOrEqual(20);
    // No other test counts them.
    await untilResponse("every decision", decided, (count) => count - before >= sent);
  });

  it("closes the connections of a key that is taken out of the file", async () => {
    const { connection, cause } = await admitted(revoked);
    const text = readFileSync(flow.keysFile, "utf8");
    writeFileSync(flow.keysFile, text.replace(publicKeyToml(revoked, "Wide", "revoked"), ""));
    await flow.sandbox.edge.reloadKeys();
    await until("the end", () => cause() !== null);
    expect(cause()).toEqual({ kind: "app", code: REJECTIONS.unauthorized.quicCode });
    expect(connection.send(flow.tipped().bytes)).toBe(CLOSED);
  });

  it("closes every connection with the code of overloaded when it stops", async () => {
    const stopped = await start();
    const { cause } = await admitted(known, stopped);
    await stopped.stop();
    await until("the end", () => cause() !== null);
    expect(cause()).toEqual({ kind: "app", code: REJECTIONS.overloaded.quicCode });
  });
});
