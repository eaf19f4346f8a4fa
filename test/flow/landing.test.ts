/**
 * From submission to the final state: a real edge over real sockets, with leaders that can lose
 * what they acknowledge, and a cluster that executes what reaches the right leader.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configFromValues } from "../../src/config/load.ts";
import { systemClock } from "../../src/core/clock.ts";
import { decodeBase58, encodeKey, encodeSignature } from "../../src/core/encoding.ts";
import type { Log } from "../../src/core/log.ts";
import { type Edge, startEdge } from "../../src/edge/edge.ts";
import {
  type ClusterUrls,
  createSimulatedCluster,
  type SimulatedCluster,
} from "../../src/sandbox/cluster.ts";
import { createSimulatedLeader, type SimulatedLeader } from "../../src/sandbox/leader.ts";
import { signedTransfer } from "../../src/sandbox/transfer.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { ENGINE, keysToml, RPC_PATH, THREADS, untilResponse, WIDE_KEY } from "../support/flow.ts";
import { expectScrapedBalance } from "../support/landing-balance.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";
import { until } from "../support/wait.ts";

const SLOT_MS = 100;
const LEADERS = 4;
/** No block of this cluster has this blockhash. */
const FOREIGN = new Uint8Array(32).fill(9);

const leaders: SimulatedLeader[] = [];
const contacts: { readonly identity: string; readonly address: string }[] = [];
/** Leaders that acknowledge everything and put nothing into a block. */
const deaf = new Set<string>();
const received: { readonly identity: string; readonly signature: string }[] = [];
const stopped: Record<string, unknown>[] = [];
const payer = freshIdentity();
const tip = freshIdentity();
let cluster: SimulatedCluster;
let urls: ClusterUrls;
let edge: Edge;
let folder = "";
let made = 0n;

const log: Log = {
  info(fields, message) {
    if (message === "landing stopped") stopped.push({ ...fields });
  },
  warn() {},
  error() {},
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-landing-"));
  writeFileSync(join(folder, "keys.toml"), keysToml());
  const clock = systemClock;
  for (let index = 0; index < LEADERS; index += 1) {
    const own = freshIdentity();
    const identity = encodeKey(own.publicKey);
    const leader = createSimulatedLeader({ clock, identity: own });
    contacts.push({ identity, address: (await leader.start()).address });
    leaders.push(leader);
    leader.onTransaction((bytes) => {
      received.push({ identity, signature: encodeSignature(bytes, 1) });
      if (!deaf.has(identity)) cluster.receive(identity, bytes);
    });
  }
  cluster = await createSimulatedCluster({
    clock,
    leaders: contacts,
    slotMs: SLOT_MS,
    skipShare: 0,
  });
  urls = await cluster.start();
  cluster.airdrop(encodeKey(payer.publicKey), 1_000_000_000_000n);
  cluster.airdrop(encodeKey(tip.publicKey), 1_000_000_000n);
  await start();
});

/** Starts an edge, which receives everything sent from then on, and waits for its connections. */
async function start(): Promise<void> {
  const config = configFromValues(
    {
      http: { listen: "127.0.0.1:0", threads: THREADS },
      admin: { listen: "127.0.0.1:0" },
      cluster: { rpc_url: urls.rpcUrl, ws_url: urls.wsUrl },
      tip: { accounts: [encodeKey(tip.publicKey)] },
      accounts: { keys_file: "keys.toml" },
      decode: { workers: 0 },
      send: { bind: "127.0.0.1:0", engine: ENGINE, leaders: 1 },
      landing: { poll: "200ms" },
    },
    folder,
    {},
  );
  edge = await startEdge(config, { log });
  await until("all connections", () => edge.readiness().ok);
  await untilResponse("every connection", metrics, (families) => {
    return seriesValue(families, "touchdown_connections_live") === LEADERS;
  });
}

afterAll(async () => {
  await edge?.stop();
  await cluster?.stop();
  for (const leader of leaders) await leader.stop();
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});

async function metrics() {
  return parsePrometheus(await (await fetch(`http://${edge.adminAddress}/metrics`)).text());
}

interface LeaderStats {
  readonly identity: string;
  /** Deliveries that it acknowledged, and transactions that landed in its blocks. */
  readonly acked: number;
  readonly landed: number;
}

async function leaderStats(): Promise<readonly LeaderStats[]> {
  const response = await fetch(`http://${edge.adminAddress}/leaders/stats`);
  // The shape of leader stats is tested with the module that creates them.
  return ((await response.json()) as { readonly leaders: readonly LeaderStats[] }).leaders;
}

function transfer(blockhash = decodeBase58(cluster.latestBlockhash(), 32)): Uint8Array {
  if (blockhash === null) throw new Error("the cluster has a blockhash");
  made += 1n;
  return signedTransfer({ payer, to: tip.publicKey, lamports: 1_000_000n + made, blockhash });
}

const headers = { "api-x-token": WIDE_KEY };

/** Posts the transaction; returns its signature. */
async function post(bytes: Uint8Array, config: object = {}): Promise<string> {
  const params = [Buffer.from(bytes).toString("base64"), { encoding: "base64", ...config }];
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params });
  const url = `http://${edge.httpAddress}${RPC_PATH}`;
  const response: unknown = await (await fetch(url, { method: "POST", headers, body })).json();
  const signature = encodeSignature(bytes, 1);
  expect(response).toMatchObject({ result: signature });
  return signature;
}

interface Ended {
  readonly state: string;
  readonly landing: Readonly<Record<string, unknown>>;
  readonly leaders: readonly { readonly identity: string; readonly resend: number }[];
}

/** The receipt once it shows a final state. */
function ended(signature: string): Promise<Ended> {
  const url = `http://${edge.httpAddress}/api/v1/transactions/${signature}`;
  // The receipt's own shape is tested with the module that creates it.
  const ask = async () => (await (await fetch(url, { headers })).json()) as Ended;
  const isOver = ({ state }: Ended) => ["landed", "expired", "dropped"].includes(state);
  return untilResponse("its end", ask, isOver);
}

/** The leaders of this window and of the following ones. */
function comingLeaders(): readonly string[] {
  const slot = cluster.currentSlot();
  return Array.from({ length: 40 }, (_, window) => cluster.leaderAt(slot + 4 * window));
}

/** Waits for the start of a window. */
async function newWindow(): Promise<void> {
  const before = cluster.leaderAt(cluster.currentSlot());
  await until("a window", () => cluster.leaderAt(cluster.currentSlot()) !== before);
}

const deliveriesOf = (signature: string) => received.filter((it) => it.signature === signature);

describe("a transaction", () => {
  let foreign = "";
  beforeAll(async () => {
    foreign = await post(transfer(FOREIGN));
  });

  it("that a leader accepts ends as landed, in the slot of its block", async () => {
    const signature = await post(transfer());
    const { state, landing } = await ended(signature);
    expect(state).toBe("landed");
    const landed = cluster.statusOf(signature);
    expect(landing).toMatchObject({ slot: landed?.slot, error: null });
    expect(landing["slots"]).toBeLessThan(400);
    const leader = landed?.leader;
    await untilResponse("the scorecard to count it for that leader", leaderStats, (rows) =>
      rows.some((stats) => stats.identity === leader && stats.landed > 0 && stats.acked > 0),
    );
  });

  it("that leaders lose is resent, and lands at the leader that keeps it", async () => {
    let [signature, keeper] = ["", ""];
    let deliveries: Ended["leaders"] = [];
    let identities: readonly string[] = [];
    // If the machine stalls for a window, the first leader to receive it is the one that keeps it.
    while (identities[0] === undefined || identities[0] === keeper) {
      await newWindow();
      const [now, next, ...later] = comingLeaders();
      keeper = later.find((identity) => identity !== now && identity !== next) ?? "";
      for (const { identity } of contacts) if (identity !== keeper) deaf.add(identity);
      signature = await post(transfer());
      const { state, leaders: reported } = await ended(signature);
      deaf.clear();
      expect(state).toBe("landed");
      deliveries = reported;
      identities = deliveriesOf(signature).map(({ identity }) => identity);
    }
    expect(cluster.statusOf(signature)?.leader).toBe(keeper);
    expect(identities).toContain(keeper);
    expect(deliveries[0]).toMatchObject({ identity: identities[0], resend: 0 });
    const landedWith = deliveries.filter(({ identity }) => identity === keeper);
    for (const { resend } of landedWith) expect(resend).toBeGreaterThan(0);
    expect(landedWith).not.toEqual([]);
  });

  it("is resent until it lands, but sent once where maxRetries is 0", async () => {
    for (const leader of new Set(
      Array.from({ length: 432 }, (_, slot) => cluster.leaderAt(slot)),
    )) {
      deaf.add(leader);
    }
    await newWindow();
    const [once, often] = [await post(transfer(), { maxRetries: 0 }), await post(transfer())];
    await until("resends", () => deliveriesOf(often).length >= 4);
    expect(deliveriesOf(once).length).toBeLessThanOrEqual(2);
    const before = deliveriesOf(once).length;
    await until("more resends", () => deliveriesOf(often).length >= 6);
    expect(deliveriesOf(once)).toHaveLength(before);
    deaf.clear();
    expect((await ended(often)).state).toBe("landed");
    expectScrapedBalance(await metrics());
  });

  it("with an unknown blockhash is dropped within seconds, and not sent again", async () => {
    const { state, landing, leaders: deliveries } = await ended(foreign);
    expect(state).toBe("dropped");
    expect(landing).toMatchObject({ reason: "blockhash_unknown" });
    expect(landing["known_us"]).toBeLessThan(12_000_000);
    const sends = deliveriesOf(foreign).length;
    expect(sends).toBeGreaterThan(0);
    expect(sends).toBeLessThanOrEqual(deliveries.length);
  });

  it("in flight when the edge stops has an end, and the counts balance", async () => {
    const others = edge;
    await start();
    for (let count = 0; count < 20; count += 1) await post(transfer(FOREIGN));
    const counters = expectScrapedBalance(await metrics());
    expect(counters.inFlight).toBeGreaterThanOrEqual(20);
    await edge.stop();
    edge = others;
    const { accepted, landed, expired, dropped } = stopped.at(-1) as Record<string, number>;
    expect(accepted).toBe(counters.accepted);
    expect((landed ?? 0) + (expired ?? 0) + (dropped ?? 0)).toBe(accepted);
    expect(dropped).toBeGreaterThanOrEqual(20);
  });
});
