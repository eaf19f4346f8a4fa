/**
 * A simulated cluster whose leaders land what reaches them in their window, with network faults in
 * front of them, and an edge in this process.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFromValues } from "../../src/config/load.ts";
import { systemClock } from "../../src/core/clock.ts";
import { decodeBase58, encodeKey } from "../../src/core/encoding.ts";
import { type Edge, startEdge } from "../../src/edge/edge.ts";
import { type ClusterOptions, createSimulatedCluster } from "../../src/sandbox/cluster.ts";
import { createFaultProxy, type FaultProxy, type Faults } from "../../src/sandbox/fault-proxy.ts";
import { createSimulatedLeader, type SimulatedLeader } from "../../src/sandbox/leader.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import type { Network } from "./edge-process.ts";
import { ENGINE, keysToml, RAW_PATH, THREADS, untilResponse, WIDE_KEY } from "./flow.ts";
import { type Family, parsePrometheus, seriesValue } from "./prometheus.ts";
import { type BuiltTransaction, buildTransaction, newKeypair } from "./transactions.ts";

export interface LandingNetwork extends Network {
  /** By index; the address changes with `move`. */
  readonly contacts: readonly { readonly identity: string; readonly address: string }[];
  /** Identities that acknowledge everything and put nothing into a block. */
  readonly deaf: Set<string>;
  /** A fault proxy in front of each leader, where faults were configured. */
  readonly proxies: readonly FaultProxy[];
  /** A funded transfer to the tip account, over the newest blockhash unless another is given. */
  tipped(blockhash?: Uint8Array): BuiltTransaction;
  /** Restarts that leader under another address, which the cluster reports. */
  move(place: number): Promise<void>;
}

export interface LandingNetworkOptions {
  readonly leaders?: number;
  readonly cluster?: Partial<ClusterOptions>;
  /** What happens to datagrams between the edge and each leader; none: no proxy. */
  readonly faults?: Partial<Faults>;
}

export async function startLandingNetwork(options: LandingNetworkOptions = {}) {
  const clock = systemClock;
  const received: Buffer[] = [];
  const deaf = new Set<string>();
  const leaders: SimulatedLeader[] = [];
  const contacts: { readonly identity: string; address: string }[] = [];
  const identities: Identity[] = [];
  const proxies: FaultProxy[] = [];

  async function startLeader(own: Identity): Promise<SimulatedLeader> {
    const identity = encodeKey(own.publicKey);
    const leader = createSimulatedLeader({ clock, identity: own });
    leader.onTransaction((bytes) => {
      received.push(Buffer.from(bytes));
      if (!deaf.has(identity)) cluster.receive(identity, bytes);
    });
    await leader.start();
    return leader;
  }

  for (let place = 0; place < (options.leaders ?? 4); place += 1) {
    const own = freshIdentity();
    const leader = await startLeader(own);
    let { address } = leader;
    if (options.faults !== undefined) {
      // A seed for each, so that the nth datagram has the same fault in every run.
      const rules = { seed: 10 * place + 1, faults: options.faults };
      const proxy = createFaultProxy({ clock, target: address, ...rules });
      proxies.push(proxy);
      ({ address } = await proxy.start());
    }
    identities.push(own);
    leaders.push(leader);
    contacts.push({ identity: encodeKey(own.publicKey), address });
  }
  const cluster = await createSimulatedCluster({
    clock,
    leaders: contacts,
    slotMs: 100,
    skipShare: 0,
    ...options.cluster,
  });
  const urls = await cluster.start();
  const payer = newKeypair();
  const tipAccount = newKeypair().address;
  cluster.airdrop(payer.address, 1_000_000_000_000n);
  cluster.airdrop(tipAccount, 1_000_000_000n);
  let made = 0;
  const network: LandingNetwork = {
    cluster,
    leaders,
    contacts,
    deaf,
    proxies,
    ...urls,
    tipAccount,
    deliveriesOf: (bytes) => received.filter((it) => it.equals(bytes)).length,
    tipped(blockhash) {
      made += 1;
      const newest = decodeBase58(cluster.latestBlockhash("confirmed"), 32) ?? new Uint8Array();
      const tips = [{ to: tipAccount, lamports: 1_000_000 + made }];
      return buildTransaction({ payer, tips, blockhash: blockhash ?? newest });
    },
    async move(place) {
      const [own, contact] = [identities[place], contacts[place]];
      if (own === undefined || contact === undefined) throw new RangeError(`no leader ${place}`);
      await leaders[place]?.stop();
      const leader = await startLeader(own);
      leaders[place] = leader;
      contact.address = leader.address;
    },
    async stop() {
      await cluster.stop();
      for (const each of [...proxies, ...leaders]) await each.stop();
    },
  };
  return network;
}

/** The part of a receipt that tests of landing read. */
export interface LandingReceipt {
  readonly state: string;
  readonly landing: Readonly<Record<string, unknown>>;
  readonly leaders: readonly {
    readonly identity: string;
    readonly address: string;
    readonly state: string;
    readonly reason: string | null;
    readonly resend: number;
  }[];
}

export interface LandingEdge {
  readonly edge: Edge;
  /** Its log lines, by level and message. */
  readonly lines: readonly string[];
  /** Submits the bytes and returns the status. */
  post(bytes: Uint8Array): Promise<number>;
  receipt(signature: string): Promise<LandingReceipt>;
  /** The receipt once it has a final state. */
  ended(signature: string): Promise<LandingReceipt>;
  metrics(): Promise<ReadonlyMap<string, Family>>;
  stop(): Promise<void>;
}

/** An edge in front of the network, with every connection live; `over` are its own sections. */
export async function startLandingEdge(
  network: LandingNetwork,
  over: Readonly<Record<string, object>> = {},
): Promise<LandingEdge> {
  const folder = mkdtempSync(join(tmpdir(), "touchdown-landing-"));
  writeFileSync(join(folder, "keys.toml"), keysToml());
  const { rpcUrl, wsUrl, tipAccount } = network;
  const values = {
    http: { listen: "127.0.0.1:0", threads: THREADS },
    admin: { listen: "127.0.0.1:0" },
    cluster: { rpc_url: rpcUrl, ws_url: wsUrl, ...over["cluster"] },
    tip: { accounts: [tipAccount] },
    accounts: { keys_file: "keys.toml" },
    decode: { workers: 0 },
    send: { bind: "127.0.0.1:0", engine: ENGINE, ...over["send"] },
    landing: { poll: "200ms", ...over["landing"] },
  };
  const lines: string[] = [];
  const note = (level: string) => (_fields: object, message: string) =>
    void lines.push(`${level} ${message}`);
  const log = { info: note("info"), warn: note("warn"), error: note("error") };
  const edge = await startEdge(configFromValues(values, folder, {}), { log });
  const headers = { "api-x-token": WIDE_KEY };
  const url = `http://${edge.httpAddress}`;
  const running: LandingEdge = {
    edge,
    lines,
    async post(bytes) {
      const body = Uint8Array.from(bytes);
      const response = await fetch(url + RAW_PATH, { method: "POST", headers, body });
      await response.arrayBuffer();
      return response.status;
    },
    async receipt(signature) {
      const response = await fetch(`${url}/api/v1/transactions/${signature}`, { headers });
      // The receipt's format is tested where it is defined.
      return (await response.json()) as LandingReceipt;
    },
    ended: (signature) =>
      untilResponse(
        `the end of ${signature}`,
        () => running.receipt(signature),
        ({ state }) => ["landed", "expired", "dropped"].includes(state),
        120_000,
      ),
    metrics: async () =>
      parsePrometheus(await (await fetch(`http://${edge.adminAddress}/metrics`)).text()),
    async stop() {
      await edge.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await untilResponse("every connection", running.metrics, (families) => {
    return seriesValue(families, "touchdown_connections_live") >= network.leaders.length;
  });
  return running;
}
