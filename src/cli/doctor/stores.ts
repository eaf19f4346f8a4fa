/** What `doctor` checks about accounts: the database, the store of shared limits, the provider. */

import { existsSync } from "node:fs";
import type { RedisLimitStore } from "../../accounts/global-limits/redis-store.ts";
import type { Config, ControlConfig } from "../../config/config.ts";
import { type Clock, NS_PER_MS, sleep } from "../../core/clock.ts";
import { fetchReasonOf, messageOf } from "../../core/errors.ts";
import { DOCTOR_RESPONSE_MS_MAX } from "../limits.ts";
import { type Finding, findingsOf } from "./finding.ts";

const accounts = findingsOf("accounts");
const provider = findingsOf("provider");
const LOG = { info() {}, warn() {}, error() {} };

export async function edgeStoreFindings(clock: Clock, config: Config): Promise<readonly Finding[]> {
  const { databaseUrl, keysFile } = config.accounts;
  const findings: Finding[] = [];
  if (keysFile !== null) {
    findings.push(accounts.ok("keys_file", `keys come from ${keysFile}, without a database`));
  }
  if (databaseUrl !== null) {
    findings.push(await database(clock, "accounts.database_url", databaseUrl));
  }
  if (config.limits.redisUrl !== null) findings.push(await store(clock, config.limits.redisUrl));
  return findings;
}

export async function controlFindings(
  clock: Clock,
  config: ControlConfig,
): Promise<readonly Finding[]> {
  const { databaseUrl, ownerUrl, vaultFile, oidc } = config;
  return [
    await database(clock, "accounts.database_url", databaseUrl),
    ...(ownerUrl === null ? [] : [await database(clock, "control.owner_url", ownerUrl)]),
    await vault(vaultFile),
    await discovery(oidc.issuer),
  ];
}

/** One statement over a new connection, then whether the tables are there. */
async function database(clock: Clock, key: string, url: string): Promise<Finding> {
  const { createDatabase } = await import("../../accounts/database/database.ts");
  const options = { url, connections: 1, applicationName: "touchdown doctor" };
  const pool = createDatabase({ clock, log: LOG }, options);
  const startNs = clock.nowNs();
  try {
    const [row] = await pool.query<{ keys: string | null }>(
      "select to_regclass('touchdown.keys')::text as keys",
    );
    const ms = ((clock.nowNs() - startNs) / NS_PER_MS).toFixed(0);
    if (row?.keys !== null) return accounts.ok("database", `${key} answers in ${ms} ms`);
    return accounts.error(
      "database",
      `${key} answers, but has no tables of Touchdown`,
      "an edge never becomes ready: it reads no keys",
      "start `touchdown control` once: it migrates the database",
    );
  } catch (cause) {
    return accounts.error(
      "database",
      `${key}: ${messageOf(cause)}`,
      "changes of keys reach no edge, and the dashboard fails; edges go on with the keys that " +
        "they have read",
      `${key}, the server, its pg_hba.conf or the firewall between`,
    );
  } finally {
    await pool.stop();
  }
}

async function store(clock: Clock, url: string): Promise<Finding> {
  const { createLimitStore } = await import("../../accounts/global-limits/redis-store.ts");
  const limits = createLimitStore({ clock, log: LOG }, url);
  try {
    limits.start();
    const count = await firstAnswer(clock, limits);
    return accounts.ok("shared_limits", `limits.redis_url answers; ${count} edges share limits`);
  } catch (cause) {
    return accounts.error(
      "shared_limits",
      `limits.redis_url: ${messageOf(cause)}`,
      "each edge allows its fair share of a shared limit, instead of what others leave",
      "limits.redis_url, or the store",
    );
  } finally {
    limits.stop();
  }
}

/**
 * The store's client refuses commands until it is connected: repeated until a connection fails or
 * the time is up.
 */
async function firstAnswer(clock: Clock, limits: RedisLimitStore): Promise<number> {
  const deadlineNs = clock.nowNs() + DOCTOR_RESPONSE_MS_MAX * NS_PER_MS;
  for (;;) {
    try {
      return await limits.edgeCount();
    } catch (cause) {
      const failure = limits.connectionError();
      if (failure !== null) throw failure;
      if (clock.nowNs() >= deadlineNs) throw cause;
      await sleep(clock, RETRY_MS);
    }
  }
}

const RETRY_MS = 50;

async function vault(path: string): Promise<Finding> {
  const { openVault } = await import("../../control/vault.ts");
  try {
    if (!existsSync(path)) {
      return accounts.warning(
        "vault",
        `${path} is not there; the first start makes it`,
        "keys that an earlier vault sealed cannot be shown again, should there be any",
        "put the file of the earlier installation back, if there was one",
      );
    }
    const { ids } = openVault(path);
    return accounts.ok("vault", `${path} holds ${ids.length} key-encryption key(s)`);
  } catch (cause) {
    return accounts.error(
      "vault",
      messageOf(cause),
      "`control` does not start",
      "control.vault_file; restore it from a backup",
    );
  }
}

async function discovery(issuer: string): Promise<Finding> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  try {
    const document = await jsonFrom(url);
    const named = document["issuer"];
    if (typeof named !== "string" || named.replace(/\/$/, "") !== issuer.replace(/\/$/, "")) {
      throw new Error(`the provider calls itself ${JSON.stringify(named)}`);
    }
    const keys = (await jsonFrom(String(document["jwks_uri"])))["keys"];
    if (!Array.isArray(keys) || keys.length === 0)
      throw new Error("the provider publishes no keys");
    return provider.ok("discovery", `${issuer} answers, with ${keys.length} signing keys`);
  } catch (cause) {
    return provider.error(
      "discovery",
      `control.oidc_issuer: ${url}: ${fetchReasonOf(cause)}`,
      "no user can log in to the dashboard; keys and management tokens work",
      `curl -sS ${url}`,
    );
  }
}

async function jsonFrom(url: string): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url, { signal: AbortSignal.timeout(DOCTOR_RESPONSE_MS_MAX) });
  if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
  return (await response.json()) as Readonly<Record<string, unknown>>;
}
