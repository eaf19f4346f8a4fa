/**
 * The sandbox's accounts and dashboard: an embedded Postgres with the store, a real identity
 * provider with two test users, and the control process. The store starts first, because the edge
 * reads its keys from it; the dashboard last, so that sending need not wait for it.
 */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { controlFromValues } from "../config/load.ts";
import type { Actor, Result, Store } from "../control/store/contract.ts";
import { UNRESTRICTED } from "../control/store/key-options.ts";
import { openStore } from "../control/store/open.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { VERSION } from "../runtime/version.ts";
import { EXAMPLE_PATH } from "./cluster-http.ts";
import { dashboardEnvironment } from "./environment.ts";
import { freePort } from "./ports.ts";
import { startPostgres } from "./postgres.ts";
import type { QuicPlace } from "./quic-listener.ts";

interface Deps {
  readonly clock: Clock;
  readonly log: Log;
}

export interface SandboxAccounts {
  readonly store: Store;
  /** For the edge, which may read hashes and limits and write usage. */
  readonly edgeUrl: string;
  readonly controlUrl: string;
  readonly folder: string;
  /** Not always below `folder`: as root, another user must be able to reach it. */
  readonly databaseFolder: string;
  /** A key of the account `sandbox`, which has no login; the key can be linked. */
  readonly key: string;
  stop(): Promise<void>;
}

export interface Dashboard {
  readonly url: string;
  readonly issuer: string;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const PORT = 8088;
const SESSION = { idle: "30m", max: "12h" } as const;
const SYSTEM: Actor = { kind: "system", accountId: null, address: null, userAgent: null };

/**
 * Starts Postgres in `folder` and opens the store, with a key to send with. Nothing survives
 * `stop`, so commits are not forced to the disk.
 */
export async function openAccounts(deps: Deps, folder: string): Promise<SandboxAccounts> {
  const place = { folder: join(folder, "postgres"), port: null, durable: false };
  const server = await startPostgres(deps, place);
  const end = async (): Promise<void> => {
    await server.stop();
    await rm(server.folder, { recursive: true, force: true });
  };
  try {
    const opened = await openStore(deps, {
      databaseUrl: server.controlUrl,
      ownerUrl: server.ownerUrl,
      vaultFile: join(folder, "vault"),
      environment: "sandbox",
      sessionIdleMs: 30 * 60_000,
      sessionMsMax: 12 * 3_600_000,
    });
    const { store } = opened;
    const stop = async (): Promise<void> => {
      await opened.stop();
      await end();
    };
    const key = await firstKey(store);
    const { edgeUrl, controlUrl } = server;
    return { store, edgeUrl, controlUrl, folder, databaseFolder: server.folder, key, stop };
  } catch (error) {
    await end();
    throw error;
  }
}

async function firstKey(store: Store): Promise<string> {
  const account = orThrow(await store.accounts.create("sandbox", "Beta", SYSTEM));
  const options = { ...UNRESTRICTED, label: "sandbox" };
  return orThrow(await store.keys.create(account.id, options, SYSTEM)).token;
}

function orThrow<T>(result: Result<T>): T {
  if (result.kind === "ok") return result.value;
  throw new SetupError(`the sandbox's accounts: ${result.detail}`);
}

/** Starts the provider and the dashboard for one edge. */
export async function startDashboard(
  deps: Deps,
  accounts: SandboxAccounts,
  edge: {
    readonly url: string;
    readonly adminUrl: string;
    readonly rpcUrl: string;
    readonly quic: QuicPlace | null;
  },
): Promise<Dashboard> {
  const { quic } = edge;
  // Imported lazily: sending need not wait for their libraries.
  const { startControl } = await import("../control/control.ts");
  const { TEST_USERS, startProvider } = await import("./provider.ts");
  // The provider accepts one return address, so the port must be known before both start.
  const port = await freePort(PORT).catch(() => freePort());
  const url = `http://${HOST}:${port}`;
  const redirectUri = `${url}/login/callback`;
  const provider = await startProvider(deps, { port: 0, redirectUri });
  try {
    const config = controlFromValues(
      {
        control: {
          listen: `${HOST}:${port}`,
          public_url: url,
          oidc_issuer: provider.issuer,
          oidc_client_id: provider.clientId,
          oidc_client_secret: provider.clientSecret,
          vault_file: "vault",
          admins: [`${provider.issuer} ${TEST_USERS[0]?.subject ?? ""}`],
          session_idle: SESSION.idle,
          session_max: SESSION.max,
          regions: [`sandbox=${edge.url}`],
          edges: [`sandbox=${edge.adminUrl}`],
          example_rpc_url: edge.rpcUrl,
          example_transaction_url: edge.rpcUrl + EXAMPLE_PATH,
          ...(quic !== null && { quic_regions: [`sandbox=${quic.address}`] }),
          ...(quic?.authorityFile && { example_authority: quic.authorityFile }),
        },
        admin: { listen: `${HOST}:0` },
        accounts: { database_url: accounts.controlUrl },
      },
      accounts.folder,
      dashboardEnvironment(),
    );
    const control = await startControl(config, {
      ...deps,
      store: accounts.store,
      version: VERSION,
    });
    const stop = async (): Promise<void> => {
      await control.stop();
      await provider.stop();
    };
    return { url, issuer: provider.issuer, stop };
  } catch (error) {
    await provider.stop();
    throw error;
  }
}
