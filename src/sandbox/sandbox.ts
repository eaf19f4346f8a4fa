/**
 * The sandbox, on one machine and loopback: a simulated cluster whose leaders speak real QUIC, and
 * a real edge in front of it, made from the same parts as in production. Nothing is kept: each
 * start creates new identities, a new key and a new payer.
 *
 * Note: blockhashes stay valid for about an hour here instead of the network's 150 blocks, so that
 * the printed command still lands when it is pasted much later.
 */

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateToken } from "../accounts/keys/format.ts";
import { configFromValues } from "../config/load.ts";
import { type Clock, systemClock, until } from "../core/clock.ts";
import { decodeBase58, encodeBase64, encodeKey } from "../core/encoding.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { type Edge, startEdge } from "../edge/edge.ts";
import { freshIdentity, type Identity } from "../send/identity.ts";
import { createLog } from "../telemetry/log.ts";
import { createSimulatedCluster, type SimulatedCluster } from "./cluster.ts";
import { EXAMPLE_PATH, type Example } from "./cluster-http.ts";
import type { Dashboard, SandboxAccounts } from "./dashboard.ts";
import { sandboxEnvironment } from "./environment.ts";
import { createFaultProxy, type Faults } from "./fault-proxy.ts";
import { createSimulatedLeader, type LeaderBehaviour, type SimulatedLeader } from "./leader.ts";
import { SANDBOX_LANDINGS_SHOWN_MAX } from "./limits.ts";
import { isQuicPossible, issueQuicSection, type QuicPlace } from "./quic-listener.ts";
import { makeSandboxFolder, removeLeftovers } from "./sandbox-folder.ts";
import { signedTransfer } from "./transfer.ts";

export interface SandboxOptions {
  /** The edge's port; 0 for any free port. Default: 8080, or any free port if that is taken. */
  readonly port?: number;
  /** Leaders of the simulated cluster. */
  readonly leaderCount?: number;
  /** Six leaders, four of them with one fault each. */
  readonly faults?: boolean;
  /** Whether the cluster has Alpenglow; otherwise Tower BFT. */
  readonly alpenglow?: boolean;
  /**
   * Keys of the edge's configuration in the form of the file; they override the sandbox's own. With
   * `quic` the sandbox issues no certificate for it.
   */
  readonly edge?: Readonly<Record<string, object | string>>;
  readonly log?: Log;
  /** Whether accounts are in a database, with a dashboard; otherwise one key is in a file. */
  readonly dashboard?: boolean;
  /** Receives one line per event, such as a landing; their number is bounded. */
  readonly print?: (line: string) => void;
}

export interface Sandbox {
  readonly edge: Edge;
  readonly cluster: SimulatedCluster;
  readonly leaders: readonly SimulatedLeader[];
  /** "http://host:port" of the edge. */
  readonly url: string;
  readonly adminUrl: string;
  /** Of clients over QUIC; null where the edge takes none. */
  readonly quic: QuicPlace | null;
  /** A key of the account `sandbox`. */
  readonly key: string;
  /** Base58. */
  readonly tipAccount: string;
  /** Funded with 1,000 SOL. */
  readonly payer: Identity;
  /** A new signed transfer with a tip by the payer; each call returns a different one. */
  transaction(): Uint8Array;
  /** The lines for the user: addresses, the key, a command to paste. */
  readonly lines: readonly string[];
  /** The dashboard, which starts last; null without one. */
  readonly dashboard: Promise<Dashboard> | null;
  stop(): Promise<void>;
}

/** A leader's fault, or that of the network in front of it. */
interface LeaderFaults {
  readonly behaviour?: Partial<LeaderBehaviour>;
  readonly faults?: Partial<Faults>;
}

/** Two good leaders, and one each that stalls, evicts, requires a token and is hard to reach. */
const LEADER_FAULTS: readonly LeaderFaults[] = [
  {},
  {},
  { behaviour: { streamsMax: 4, reading: "stalled" } },
  { behaviour: { evictAfterMs: 3_000 } },
  { behaviour: { retry: true, idleTimeoutMs: 2_000, dropFirst: 1 } },
  { faults: { loss: 0.05, delayMs: 20, jitterMs: 20, reorder: 0.05, duplicate: 0.02 } },
];

const HOST = "127.0.0.1";
const PORT = 8080;
const LEADER_COUNT = 4;
const LAMPORTS_PER_SOL = 1_000_000_000n;
const TIP_LAMPORTS = 1_000_000n;
const READY_MS = 20_000;
const READY_POLL_MS = 20;
/** About an hour of 250 ms slots. */
const BLOCKHASH_AGE_MAX = 14_400;

/**
 * Starts everything and resolves once the edge is ready.
 * @throws SetupError when it cannot start
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const clock = systemClock;
  const log = options.log ?? createLog({ level: "warn", destination: 2 });
  await removeLeftovers({ clock, log });
  const folder = makeSandboxFolder();
  const undo: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const stop = async (): Promise<void> => {
    for (const act of undo.splice(0).toReversed()) await act();
  };
  try {
    let example: Example = () => null;
    const [{ parts, accounts }, network] = await both(
      startAccounts({ clock, log }, options, folder, undo),
      startNetwork(clock, options, undo, () => example()),
    );
    const key = accounts?.key ?? generateToken("sandbox");
    const tip = freshIdentity();
    const tipAccount = encodeKey(tip.publicKey);
    writeFileSync(join(folder, "keys.toml"), keysFile(key), { mode: 0o600 });
    const over = keysOf(accounts, options);
    const configOf = (port: number, more: object) =>
      edgeConfig(folder, network.urls, tipAccount, port, { ...over, ...more });
    const isOwnQuic = over["quic"] === undefined && isQuicPossible(configOf(0, {}));
    const own = isOwnQuic ? issueQuicSection(folder, clock) : null;
    const edge = await startOnPort(options.port, (port) =>
      startEdge(configOf(port, own === null ? {} : { quic: own.section }), { clock, log }),
    );
    undo.push(() => edge.stop());
    await untilReady(clock, edge);
    const quic =
      edge.quicAddress === null
        ? null
        : { address: edge.quicAddress, authorityFile: own?.authorityFile ?? null };

    const { cluster } = network;
    const payer = freshIdentity();
    cluster.airdrop(encodeKey(payer.publicKey), 1_000n * LAMPORTS_PER_SOL);
    cluster.airdrop(tipAccount, LAMPORTS_PER_SOL);
    let made = 0n;
    const transaction = (): Uint8Array => {
      const blockhash =
        decodeBase58(cluster.latestBlockhash("confirmed"), 32) ?? new Uint8Array(32);
      // One more lamport each time makes a different transaction even with the same blockhash.
      const lamports = TIP_LAMPORTS + made;
      made += 1n;
      return signedTransfer({ payer, to: tip.publicKey, lamports, blockhash });
    };
    example = transaction;
    const url = `http://${edge.httpAddress}`;
    const adminUrl = `http://${edge.adminAddress}`;
    const facts = { url, adminUrl, quic, key, tipAccount, ...network.urls };
    const lines = describe(facts, network.addresses, transaction());
    const { leaders } = network;
    const found = { edge, cluster, leaders, url, adminUrl, quic, key, tipAccount, payer };
    const dashboard =
      parts === null || accounts === null
        ? null
        : parts.startDashboard({ clock, log }, accounts, {
            ...{ url, adminUrl, quic, rpcUrl: network.urls.rpcUrl },
          });
    // A failed start is reported here and does not keep the rest from being stopped.
    const started = dashboard?.catch((error: unknown) => {
      log.error({ err: error }, "no dashboard");
      return null;
    });
    undo.push(async () => (await started)?.stop());
    return { ...found, transaction, lines, dashboard, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Undo = (() => unknown)[];

/** Awaits both, started in parallel; if one fails, rejects only once the other has finished too. */
async function both<A, B>(one: Promise<A>, other: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([one, other]);
  return await Promise.all([one, other]);
}

async function startAccounts(
  deps: { readonly clock: Clock; readonly log: Log },
  options: SandboxOptions,
  folder: string,
  undo: Undo,
) {
  if (options.dashboard !== true) return { parts: null, accounts: null };
  // Imported lazily: an edge and a cluster need none of its libraries.
  const parts = await import("./dashboard.ts");
  const accounts = await parts.openAccounts(deps, folder);
  undo.push(() => accounts.stop());
  return { parts, accounts };
}

async function startNetwork(clock: Clock, options: SandboxOptions, undo: Undo, example: Example) {
  const leaders: SimulatedLeader[] = [];
  const contacts: { readonly identity: string; readonly address: string }[] = [];
  const leaderFaults = options.faults === true ? LEADER_FAULTS : [];
  const count =
    options.leaderCount ?? (options.faults === true ? leaderFaults.length : LEADER_COUNT);
  for (let index = 0; index < count; index += 1) {
    const identity = freshIdentity();
    const { behaviour = {}, faults = null } = leaderFaults[index] ?? {};
    const leader = createSimulatedLeader({ clock, identity, host: HOST, behaviour });
    let { address } = await leader.start();
    undo.push(() => leader.stop());
    if (faults !== null) {
      const proxy = createFaultProxy({ clock, target: address, seed: index, faults });
      ({ address } = await proxy.start());
      undo.push(() => proxy.stop());
    }
    leaders.push(leader);
    contacts.push({ identity: encodeKey(identity.publicKey), address });
  }
  let shown = 0;
  const cluster = await createSimulatedCluster({
    clock,
    leaders: contacts,
    consensus: options.alpenglow === true ? "alpenglow" : "tower_bft",
    blockhashAgeMax: BLOCKHASH_AGE_MAX,
    example,
    onLanded(landed) {
      if (landed.leader === null || shown >= SANDBOX_LANDINGS_SHOWN_MAX) return;
      shown += 1;
      const result = landed.err === null ? "landed" : `failed (${JSON.stringify(landed.err)})`;
      options.print?.(`${landed.signature} ${result} in slot ${landed.slot}`);
      if (shown === SANDBOX_LANDINGS_SHOWN_MAX) options.print?.("further landings are not shown");
    },
  });
  const urls = await cluster.start();
  undo.push(() => cluster.stop());
  for (const [index, leader] of leaders.entries()) {
    const identity = contacts[index]?.identity ?? "";
    leader.onTransaction((bytes) => cluster.receive(identity, bytes));
  }
  return { leaders, cluster, urls, addresses: contacts.map(({ address }) => address) };
}

function edgeConfig(
  folder: string,
  urls: { readonly rpcUrl: string; readonly wsUrl: string },
  tipAccount: string,
  port: number,
  over: Readonly<Record<string, object | string>>,
) {
  const own = {
    region: "sandbox",
    // As many as nearly every limit of open files allows, so that the edge has no reason to warn.
    http: { listen: `${HOST}:${port}`, connections: 1_000, connections_per_address: 1_000 },
    admin: { listen: `${HOST}:0` },
    cluster: { rpc_url: urls.rpcUrl, ws_url: urls.wsUrl },
    tip: { accounts: [tipAccount] },
    accounts: { keys_file: "keys.toml" },
    send: { bind: `${HOST}:0` },
  };
  const sections: Record<string, unknown> = { ...own };
  for (const [name, value] of Object.entries(over)) {
    const before = sections[name];
    const merge = typeof before === "object" && typeof value === "object";
    // Keys come from one source: a database replaces the file.
    const replaces = "database_url" in Object(value);
    sections[name] = merge && !replaces ? { ...before, ...value } : value;
  }
  return configFromValues(sections, folder, sandboxEnvironment());
}

/** The source of the edge's keys, and the overrides of the options. */
function keysOf(accounts: SandboxAccounts | null, { edge = {} }: SandboxOptions) {
  if (accounts === null) return edge;
  // Usage is written every second, because a user watches the sandbox.
  const own = { database_url: accounts.edgeUrl, usage_period: "1s" };
  return { ...edge, accounts: own };
}

function keysFile(key: string): string {
  const plan = "[plans.Beta]\nrate_per_second = 50\nburst = 100\n";
  return `${plan}\n[[keys]]\ntoken = "${key}"\naccount = "sandbox"\nplan = "Beta"\n`;
}

/** Starts on the given port; by default on the usual port, or any free one if that is taken. */
async function startOnPort(
  port: number | undefined,
  start: (port: number) => Promise<Edge>,
): Promise<Edge> {
  if (port !== undefined) return await start(port);
  try {
    return await start(PORT);
  } catch (error) {
    if (error instanceof SetupError) return await start(0);
    throw error;
  }
}

async function untilReady(clock: Clock, edge: Edge): Promise<void> {
  const wait = { timeoutMs: READY_MS, periodMs: READY_POLL_MS };
  if (await until(clock, wait, () => edge.readiness().ok)) return;
  const failing = edge.readiness().checks.filter(({ ok }) => !ok);
  const why = failing.map(({ name, detail }) => `${name}: ${detail}`).join("; ");
  throw new SetupError(`the edge did not become ready in ${READY_MS} ms: ${why}`);
}

interface Facts {
  readonly url: string;
  readonly adminUrl: string;
  readonly quic: QuicPlace | null;
  readonly rpcUrl: string;
  readonly wsUrl: string;
  readonly key: string;
  readonly tipAccount: string;
}

function quicText({ address, authorityFile }: QuicPlace): string {
  return authorityFile === null ? address : `${address}  (authority: ${authorityFile})`;
}

function describe(
  facts: Facts,
  leaders: readonly string[],
  transaction: Uint8Array,
): readonly string[] {
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "sendTransaction",
    params: [encodeBase64(transaction)],
  };
  return [
    "Touchdown sandbox",
    `  edge         ${facts.url}`,
    `  admin        ${facts.adminUrl}  (/metrics /readyz /livez /leaders /leaders/stats)`,
    ...(facts.quic === null ? [] : [`  QUIC         ${quicText(facts.quic)}`]),
    `  cluster RPC  ${facts.rpcUrl}  ${facts.wsUrl}`,
    `  leaders      ${leaders.join("  ")}`,
    `  API key      ${facts.key}`,
    `  tip account  ${facts.tipAccount}`,
    "",
    "Send a signed, tipped transaction (valid for about an hour):",
    "",
    `curl -s ${facts.url}/api/v1/sendTransaction -H 'content-type: application/json' \\`,
    `  -H 'api-x-token: ${facts.key}' \\`,
    `  -d '${JSON.stringify(call)}'`,
    "",
    "What became of it, with the signature that was answered:",
    "",
    `curl -s ${facts.url}/api/v1/transactions/SIGNATURE -H 'api-x-token: ${facts.key}'`,
    "",
    ...(facts.quic?.authorityFile ? overQuic(facts, facts.quic) : []),
  ];
}

function overQuic({ rpcUrl, key }: Facts, { address, authorityFile }: QuicPlace) {
  return [
    "The same over QUIC, in the project's folder and after `pip install aioquic`:",
    "",
    `curl -s ${rpcUrl}${EXAMPLE_PATH} -o transaction.bin`,
    `EDGE=${address} AUTHORITY=${authorityFile} \\`,
    `  KEY=${key} python3 examples/quic.py transaction.bin`,
    "",
  ];
}
