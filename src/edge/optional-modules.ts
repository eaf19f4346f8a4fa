/**
 * Modules that only some configurations need, each loaded with its package when the configuration
 * does: an edge with a keys file and the native engine need not keep a database client and a second
 * QUIC stack in memory, nor wait for them at its start.
 */

import type { createDatabase } from "../accounts/database/database.ts";
import type { LimitStoreDeps } from "../accounts/global-limits/redis-store.ts";
import type { LimitStore } from "../accounts/global-limits/sync.ts";
import type { Config } from "../config/config.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { createQuicTransport } from "../send/portable/transport-quic.ts";

/** Each is null if the configuration does not need it. */
export interface OptionalModules {
  readonly createDatabase: typeof createDatabase | null;
  readonly createLimitStore: ((deps: LimitStoreDeps, url: string) => LimitStore) | null;
  readonly createQuicTransport: typeof createQuicTransport | null;
}

export async function loadOptionalModules(
  config: Config,
  engine: EngineChoice,
): Promise<OptionalModules> {
  const { accounts, limits } = config;
  const [database, limitStore, quic] = await Promise.all([
    accounts.databaseUrl === null ? null : import("../accounts/database/database.ts"),
    limits.redisUrl === null ? null : import("../accounts/global-limits/redis-store.ts"),
    engine.name === "native" ? null : import("../send/portable/transport-quic.ts"),
  ]);
  return {
    createDatabase: database?.createDatabase ?? null,
    createLimitStore: limitStore?.createLimitStore ?? null,
    createQuicTransport: quic?.createQuicTransport ?? null,
  };
}

/** A module that this configuration requires. @throws Error when it was not loaded */
export function requireModule<T>(module: T | null): T {
  if (module === null) throw new Error("a module that the configuration needs was not loaded");
  return module;
}
