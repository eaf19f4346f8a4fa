/**
 * SIGTERM under load, to the process that an operator runs: each accepted transaction has ended
 * once by the time the process exits, and its own last log lines say so. Clients that keep their
 * connections learn of the end from a response.
 */

import { Agent, request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import {
  type EdgeProcess,
  type EdgeProcessOptions,
  startEdgeProcess,
  untilReady,
} from "../support/edge-process.ts";
import { RAW_PATH, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { type LandingNetwork, startLandingNetwork } from "../support/landing-network.ts";

/** No block of the cluster has this blockhash: the transaction is in flight until it expires. */
const FOREIGN = new Uint8Array(32).fill(9);

let network: LandingNetwork;
let edge: EdgeProcess | null = null;
afterEach(async () => {
  await edge?.remove();
  await network?.stop();
});

async function start(options: EdgeProcessOptions): Promise<EdgeProcess> {
  network = await startLandingNetwork();
  edge = await startEdgeProcess(network, options);
  await untilReady(edge);
  return edge;
}

interface Load {
  /** Signatures with response 200. */
  readonly accepted: Set<string>;
  /** Resolves when the edge accepts nothing more. */
  readonly over: Promise<unknown>;
}

/** Eight clients post until they are rejected for good; every fifth transaction cannot land. */
function load(of: EdgeProcess): Load {
  const accepted = new Set<string>();
  let made = 0;
  const client = async (): Promise<void> => {
    for (;;) {
      made += 1;
      const { bytes, signature } = network.tipped(made % 5 === 0 ? FOREIGN : undefined);
      const headers = { "api-x-token": WIDE_KEY };
      const body = Uint8Array.from(bytes);
      const response = await fetch(of.url + RAW_PATH, { method: "POST", headers, body }).catch(
        () => null,
      );
      if (response === null) return;
      const { reason } = (await response.json()) as { readonly reason?: string };
      if (response.status === 200) accepted.add(signature);
      else if (reason === "overloaded") return;
    }
  };
  return { accepted, over: Promise.all(Array.from({ length: 8 }, client)) };
}

/** The counters in the last line that landing logs. */
function lastWords(of: EdgeProcess): Readonly<Record<string, unknown>> {
  const line = of
    .output()
    .split("\n")
    .findLast((it) => it.includes('"landing stopped"'));
  return JSON.parse(line ?? "{}") as Readonly<Record<string, unknown>>;
}

describe("SIGTERM under load", () => {
  it("gives every accepted transaction an end: landed, expired or dropped", async () => {
    const running = await start({ http: 'drain_grace = "1s"', more: '[landing]\npoll = "200ms"' });
    const { accepted, over } = load(running);
    await untilResponse(
      "transactions that have landed",
      async () => expectScrapedBalance(await running.metrics()),
      ({ landed }) => landed > 0 && accepted.size >= 300,
    );
    running.child.kill("SIGTERM");
    let scrapes = 0;
    // While the edge drains, until its listener is gone.
    await untilResponse(
      "its listener to be closed",
      async () => {
        const families = await running.metrics().catch(() => null);
        if (families === null) return true;
        expectScrapedBalance(families);
        scrapes += 1;
        return false;
      },
      (isGone) => isGone,
      90_000,
    );
    expect(scrapes).toBeGreaterThan(0);
    await over;
    expect(await running.exited).toBe(0);
    const { landed, expired, dropped, ...words } = lastWords(running) as Record<string, number>;
    // A response may be lost with its connection, so there may be more than clients received.
    expect(words["accepted"]).toBeGreaterThanOrEqual(accepted.size);
    expect(accepted.size).toBeGreaterThanOrEqual(300);
    const ends = (landed ?? 0) + (expired ?? 0) + (dropped ?? 0);
    expect(ends).toBe(words["accepted"]);
    expect(landed).toBeGreaterThan(0);
    expect(dropped).toBeGreaterThan(0);
    // What is reported as landed has landed.
    const inBlocks = [...accepted].filter((signature) => network.cluster.statusOf(signature));
    expect(inBlocks.length).toBeGreaterThanOrEqual(
      (landed ?? 0) - (words["accepted"] ?? 0) + accepted.size,
    );
  });
});

describe("SIGTERM beside clients that keep their connections", () => {
  interface Reply {
    /** null when the connection ended without a response. */
    readonly status: number | null;
    readonly closes: boolean;
  }

  /** A client with one connection. */
  function createClient({ url }: EdgeProcess) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { hostname, port } = new URL(url);
    const send = (method = "POST", path = RAW_PATH): Promise<Reply> =>
      new Promise((resolve) => {
        const headers = { "api-x-token": WIDE_KEY };
        const asked = request({ agent, host: hostname, port, path, method, headers }, (from) => {
          from.resume();
          const closes = from.headers.connection === "close";
          from.on("end", () => resolve({ status: from.statusCode ?? null, closes }));
        });
        asked.on("error", () => resolve({ status: null, closes: false }));
        asked.end(method === "POST" ? network.tipped().bytes : undefined);
      });
    return { send, close: () => agent.destroy() };
  }

  it("closes each connection with a response before it ends", async () => {
    const running = await start({ http: 'drain_grace = "4s"' });
    const clients = Array.from({ length: 4 }, () => createClient(running));
    try {
      running.child.kill("SIGTERM");
      const ends = clients.map(async ({ send }) => {
        let kept = 0;
        for (;;) {
          const reply = await send();
          if (reply.status !== 200 || reply.closes) return { kept: kept > 0, ...reply };
          kept += 1;
        }
      });
      expect(await Promise.all(ends)).toEqual(
        ends.map(() => ({ kept: true, status: 200, closes: true })),
      );
      // A new connection is accepted until the grace is over, for one request.
      const others = [
        ["POST", RAW_PATH, 200],
        ["GET", "/ping", 200],
        ["HEAD", "/ping", 200],
        ["OPTIONS", RAW_PATH, 204],
      ] as const;
      for (const [method, path, status] of others) {
        const reply = await clients[0]?.send(method, path);
        expect({ method, ...reply }).toEqual({ method, status, closes: true });
      }
      expect(await running.exited).toBe(0);
    } finally {
      for (const client of clients) client.close();
    }
  });
});
