/**
 * The complete service on loopback for browser tests: a simulated cluster, an edge that reads its
 * keys from a real Postgres, the sandbox's identity provider, and the dashboard with sample
 * programs. It serves the pages of the working tree.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, type Database } from "../../src/accounts/database/database.ts";
import { configFromValues, controlFromValues } from "../../src/config/load.ts";
import { startControl } from "../../src/control/control.ts";
import type { Store } from "../../src/control/store/contract.ts";
import { openStore } from "../../src/control/store/open.ts";
import { systemClock } from "../../src/core/clock.ts";
import { decodeBase58, encodeKey } from "../../src/core/encoding.ts";
import type { Log } from "../../src/core/log.ts";
import { startEdge } from "../../src/edge/edge.ts";
import { createSimulatedCluster } from "../../src/sandbox/cluster.ts";
import { EXAMPLE_PATH, type Example } from "../../src/sandbox/cluster-http.ts";
import { createSimulatedLeader, type SimulatedLeader } from "../../src/sandbox/leader.ts";
import { startPostgres } from "../../src/sandbox/postgres.ts";
import { startProvider } from "../../src/sandbox/provider.ts";
import { signedTransfer } from "../../src/sandbox/transfer.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { freePort } from "./ports.ts";
import { ROOT } from "./source-tree.ts";
import { until } from "./wait.ts";

const clock = systemClock;
const silent: Log = { info() {}, warn() {}, error() {} };
const HOST = "127.0.0.1";
const LEADER_COUNT = 4;

export interface Dashboard {
  /** Of the dashboard. */
  readonly url: string;
  /** Of the edge. */
  readonly edgeUrl: string;
  readonly tipAccount: string;
  readonly store: Store;
  /** Its database, as the owner. */
  readonly owner: Database;
  /** A new signed transaction with its tip. */
  transaction(): Uint8Array;
  /** Sends a transaction, or these bytes, with this key; returns the edge's response. */
  submit(key: string, body?: Uint8Array): Promise<Submitted>;
  /** Funds an address. */
  fund(address: string): void;
  /** Makes Postgres close and reject the dashboard's connections, or accept them again. */
  setDatabaseAway(away: boolean): Promise<void>;
  /** The id of the account of this name; the newest if there are several. */
  accountOf(name: string): Promise<string>;
  stop(): Promise<void>;
}

export interface Submitted {
  readonly status: number;
  /** As JSON. */
  readonly text: string;
  /** "" if rejected. */
  readonly signature: string;
}

export interface DashboardOptions {
  /** Keys of [control] that override the fixture's own; null omits one. */
  readonly control?: Readonly<Record<string, unknown>>;
}

/** Releases resources in reverse order. */
class Undo {
  readonly #acts: (() => unknown)[] = [];
  add(act: () => unknown): void {
    this.#acts.push(act);
  }
  async all(): Promise<void> {
    for (const act of this.#acts.splice(0).toReversed()) await act();
  }
}

export async function startDashboard({ control = {} }: DashboardOptions = {}): Promise<Dashboard> {
  const undo = new Undo();
  const folder = mkdtempSync(join(tmpdir(), "touchdown-dashboard-"));
  undo.add(() => rmSync(folder, { recursive: true, force: true }));
  try {
    return await start(folder, control, undo);
  } catch (error) {
    await undo.all();
    throw error;
  }
}

type ControlKeys = Readonly<Record<string, unknown>>;

async function start(folder: string, control: ControlKeys, undo: Undo): Promise<Dashboard> {
  const postgres = await startPostgres(
    { clock, log: silent },
    { folder: join(folder, "postgres"), port: null, durable: false },
  );
  undo.add(async () => {
    await postgres.stop();
    // Not below the folder above, if the tests run as root.
    rmSync(postgres.folder, { recursive: true, force: true });
  });
  const { store, stop } = await openStore(
    { clock, log: silent },
    {
      databaseUrl: postgres.controlUrl,
      ownerUrl: postgres.ownerUrl,
      vaultFile: join(folder, "vault.json"),
      environment: "sandbox",
      sessionIdleMs: 3_600_000,
      sessionMsMax: 12 * 3_600_000,
    },
  );
  undo.add(stop);
  const owner = createDatabase({ clock, log: silent }, { url: postgres.ownerUrl, connections: 1 });
  undo.add(() => owner.stop());
  const network = await startNetwork(undo);
  const edge = await startEdge(
    configFromValues(
      {
        region: "local",
        http: { listen: `${HOST}:0` },
        admin: { listen: `${HOST}:0` },
        cluster: { rpc_url: network.rpcUrl, ws_url: network.wsUrl },
        tip: { accounts: [network.tipAccount] },
        accounts: { database_url: postgres.edgeUrl, usage_period: "1s" },
        send: { bind: `${HOST}:0` },
      },
      folder,
    ),
    { clock, log: silent },
  );
  undo.add(() => edge.stop());
  await until("the edge is ready", () => edge.readiness().ok);
  const url = await startSite({ store, folder, network, edge, control }, undo);
  const { transaction, tipAccount, fund } = network;
  const edgeUrl = `http://${edge.httpAddress}`;
  return {
    ...{ url, edgeUrl, tipAccount, store, owner, transaction, fund },
    submit: (key, body = transaction()) => submit(edgeUrl, key, body),
    async setDatabaseAway(away) {
      await owner.query(`alter role control connection limit ${away ? 0 : -1}`);
      if (!away) return;
      await owner.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'control'",
      );
    },
    async accountOf(name) {
      const { items } = await store.accounts.list({ search: name, limit: 1, after: null });
      const [account] = items;
      if (account === undefined) throw new Error(`there is no account like ${name}`);
      return account.id;
    },
    stop: () => undo.all(),
  };
}

async function submit(edgeUrl: string, key: string, body: Uint8Array): Promise<Submitted> {
  const response = await fetch(`${edgeUrl}/api/v1/sendRawTransaction`, {
    method: "POST",
    headers: { "api-x-token": key, "content-type": "application/octet-stream" },
    body: Buffer.from(body),
  });
  const text = await response.text();
  const signature = /"signature":"(\w+)"/.exec(text)?.[1] ?? "";
  return { status: response.status, text, signature };
}

interface SiteParts {
  readonly store: Store;
  readonly folder: string;
  readonly network: Awaited<ReturnType<typeof startNetwork>>;
  readonly edge: { readonly httpAddress: string; readonly adminAddress: string };
  readonly control: ControlKeys;
}

async function startSite({ store, folder, network, edge, control }: SiteParts, undo: Undo) {
  const port = await freePort();
  const url = `http://${HOST}:${port}`;
  const redirectUri = `${url}/login/callback`;
  const provider = await startProvider({ log: silent }, { port: 0, redirectUri });
  undo.add(() => provider.stop());
  const config = controlFromValues(
    {
      control: withoutNull({
        listen: `${HOST}:${port}`,
        public_url: url,
        oidc_issuer: provider.issuer,
        oidc_client_id: provider.clientId,
        oidc_client_secret: provider.clientSecret,
        vault_file: "vault.json",
        admins: [`${provider.issuer} ada`],
        regions: [`local=http://${edge.httpAddress}`],
        edges: [`local=http://${edge.adminAddress}`],
        explorer_url: "https://explorer.example/tx/{signature}",
        example_rpc_url: network.rpcUrl,
        example_transaction_url: network.exampleUrl,
        ...control,
      }),
      admin: { listen: `${HOST}:0` },
      accounts: { database_url: "postgres://nobody@127.0.0.1/none" },
    },
    folder,
    {},
  );
  const pagesFolder = pages(folder);
  const site = await startControl(config, {
    store,
    clock,
    log: silent,
    version: "test",
    pagesFolder,
  });
  undo.add(() => site.stop());
  return url;
}

function withoutNull(keys: ControlKeys): ControlKeys {
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== null));
}

/** The pages in the layout of the build. */
function pages(folder: string): string {
  const to = join(folder, "pages");
  execFileSync(process.execPath, [join(ROOT, "scripts", "copy-pages.mjs"), to]);
  return to;
}

async function startNetwork(undo: Undo) {
  const leaders: SimulatedLeader[] = [];
  const contacts: { readonly identity: string; readonly address: string }[] = [];
  for (let index = 0; index < LEADER_COUNT; index += 1) {
    const identity = freshIdentity();
    const leader = createSimulatedLeader({ clock, identity, host: HOST });
    const { address } = await leader.start();
    undo.add(() => leader.stop());
    leaders.push(leader);
    contacts.push({ identity: encodeKey(identity.publicKey), address });
  }
  let example: Example = () => null;
  const cluster = await createSimulatedCluster({
    clock,
    leaders: contacts,
    example: () => example(),
    blockhashAgeMax: 14_400,
  });
  const urls = await cluster.start();
  undo.add(() => cluster.stop());
  for (const [index, leader] of leaders.entries()) {
    const identity = contacts[index]?.identity ?? "";
    leader.onTransaction((bytes) => cluster.receive(identity, bytes));
  }
  const payer = freshIdentity();
  const tip = freshIdentity();
  const tipAccount = encodeKey(tip.publicKey);
  cluster.airdrop(encodeKey(payer.publicKey), 1_000_000_000_000n);
  cluster.airdrop(tipAccount, 1_000_000_000n);
  const next = transfers(payer, tip, () => cluster.latestBlockhash());
  example = next;
  const fund = (address: string) => cluster.airdrop(address, 1_000_000_000n);
  return { ...urls, tipAccount, transaction: next, fund, exampleUrl: urls.rpcUrl + EXAMPLE_PATH };
}

function transfers(payer: Identity, tip: Identity, latestBlockhash: () => string) {
  let made = 0n;
  return (): Uint8Array => {
    const blockhash = decodeBase58(latestBlockhash(), 32) ?? new Uint8Array(32);
    made += 1n;
    return signedTransfer({ payer, to: tip.publicKey, lamports: 1_000_000n + made, blockhash });
  };
}
