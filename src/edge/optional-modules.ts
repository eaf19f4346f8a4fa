/**
 * Modules that only some configurations need, each loaded with its package when the configuration
 * does: an edge with a keys file and the native engine need not keep database and gRPC clients and
 * a second QUIC stack in memory, nor wait for them at its start.
 */

import type { createDatabase } from "../accounts/database/database.ts";
import type { createLimitStore } from "../accounts/global-limits/redis-store.ts";
import type { openGeyser } from "../cluster/geyser/stream.ts";
import type { Config } from "../config/config.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { createQuicTransport } from "../send/portable/transport-quic.ts";

/** Each is null if the configuration does not need it. */
export interface OptionalModules {
  readonly createDatabase: typeof createDatabase | null;
  readonly createLimitStore: typeof createLimitStore | null;
  readonly openGeyser: typeof openGeyser | null;
  readonly createQuicTransport: typeof createQuicTransport | null;
}

export async function loadOptionalModules(
  config: Config,
  engine: EngineChoice,
): Promise<OptionalModules> {
  const { accounts, limits, cluster } = config;
  const [database, limitStore, geyser, quic] = await Promise.all([
    accounts.databaseUrl === null ? null : import("../accounts/database/database.ts"),
    limits.redisUrl === null ? null : import("../accounts/global-limits/redis-store.ts"),
    cluster.grpcUrl === null ? null : import("../cluster/geyser/stream.ts"),
    engine.name === "native" ? null : import("../send/portable/transport-quic.ts"),
  ]);
  return {
    createDatabase: database?.createDatabase ?? null,
    createLimitStore: limitStore?.createLimitStore ?? null,
    openGeyser: geyser?.openGeyser ?? null,
    createQuicTransport: quic?.createQuicTransport ?? null,
  };
}

/** A module that this configuration requires. @throws Error when it was not loaded */
export function requireModule<T>(module: T | null): T {
  if (module === null) throw new Error("a module that the configuration needs was not loaded");
  return module;
}
