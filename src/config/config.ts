/**
 * The configuration as the process sees it: every key of the table under its own name, durations
 * in milliseconds, paths absolute, the whole frozen. The type is derived from the table, so a key
 * that is missing here or has another type there does not compile where it is used.
 */

import type { KeyPath, ValueOf } from "./table.ts";

type Lookup = <P extends KeyPath>(path: P) => ValueOf<P>;

/** Builds the record from a lookup that holds a value for every key of the table. */
export function assemble(at: Lookup) {
  return deepFreeze({
    region: at("region"),
    http: {
      listen: at("http.listen"),
      drainGraceMs: at("http.drain_grace"),
      requestDeadlineMs: at("http.request_deadline"),
      connections: at("http.connections"),
    },
    admin: { listen: at("admin.listen") },
    quic: { listen: at("quic.listen") },
    cluster: { rpcUrl: at("cluster.rpc_url"), wsUrl: at("cluster.ws_url") },
    identity: { keypair: at("identity.keypair") },
    tip: { accounts: at("tip.accounts"), lamportsMin: at("tip.lamports_min") },
    accounts: { keysFile: at("accounts.keys_file"), databaseUrl: at("accounts.database_url") },
    decode: {
      inline: at("decode.inline"),
      /** null: one less than there are processors. */
      workers: at("decode.workers"),
      verify: at("decode.verify"),
    },
    send: {
      engine: at("send.engine"),
      leaders: at("send.leaders"),
      warmWindows: at("send.warm_windows"),
      connections: at("send.connections"),
      queuePerPeer: at("send.queue_per_peer"),
      copyTtlMs: at("send.copy_ttl"),
      bind: at("send.bind"),
    },
    receipts: { keepMs: at("receipts.keep"), countMax: at("receipts.count_max") },
    log: { level: at("log.level") },
  });
}

export type Config = ReturnType<typeof assemble>;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

function deepFreeze<T extends object>(record: T): DeepReadonly<T> {
  for (const value of Object.values(record)) {
    if (typeof value === "object" && value !== null) deepFreeze(value);
  }
  // Freezing adds `readonly` at every depth, which the compiler cannot follow through the loop.
  return Object.freeze(record) as DeepReadonly<T>;
}
