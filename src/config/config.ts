/**
 * The configuration as the process uses it: every key of the table under its own name, durations in
 * milliseconds, absolute paths, deeply frozen. The type is derived from the table, so a missing key
 * or a changed type fails to compile where it is used.
 */

import type { KeyPath, ValueOf } from "./table.ts";

type Lookup = <P extends KeyPath>(path: P) => ValueOf<P>;

/** Builds the record from a lookup with a value for every key of the table. */
export function assemble(at: Lookup) {
  return deepFreeze({
    region: at("region"),
    name: at("name"),
    http: {
      listen: at("http.listen"),
      drainGraceMs: at("http.drain_grace"),
      upgradeTimeoutMs: at("http.upgrade_timeout"),
      requestDeadlineMs: at("http.request_deadline"),
      connections: at("http.connections"),
      connectionsPerAddress: at("http.connections_per_address"),
      readTimeoutMs: at("http.read_timeout"),
      idleTimeoutMs: at("http.idle_timeout"),
      threads: at("http.threads"),
      tls: tlsOf(at("http.tls.certificate"), at("http.tls.key")),
    },
    admin: { listen: at("admin.listen") },
    quic: {
      listen: at("quic.listen"),
      connections: at("quic.connections"),
      connectionsPerAddress: at("quic.connections_per_address"),
      connectionsPerAccount: at("quic.connections_per_account"),
      drainTo: at("quic.drain_to"),
      tls: tlsOf(at("quic.tls.certificate"), at("quic.tls.key")),
    },
    cluster: {
      rpcUrl: at("cluster.rpc_url"),
      wsUrl: at("cluster.ws_url"),
      grpcUrl: at("cluster.grpc_url"),
      grpcToken: at("cluster.grpc_token"),
    },
    identity: { keypair: at("identity.keypair") },
    tip: { accounts: at("tip.accounts"), lamportsMin: at("tip.lamports_min") },
    accounts: {
      keysFile: at("accounts.keys_file"),
      databaseUrl: at("accounts.database_url"),
      journal: at("accounts.journal"),
      usagePeriodMs: at("accounts.usage_period"),
    },
    limits: { redisUrl: at("limits.redis_url"), edges: at("limits.edges") },
    decode: {
      inline: at("decode.inline"),
      /** null: one less than the number of processors. */
      workers: at("decode.workers"),
      verify: at("decode.verify"),
    },
    send: {
      engine: at("send.engine"),
      leaders: at("send.leaders"),
      deny: at("send.deny"),
      warmWindows: at("send.warm_windows"),
      connections: at("send.connections"),
      queuePerLeader: at("send.queue_per_leader"),
      deliveryTtlMs: at("send.delivery_ttl"),
      bind: at("send.bind"),
    },
    landing: {
      countMax: at("landing.count_max"),
      trackForMs: at("landing.track_for"),
      pollMs: at("landing.poll"),
      resendsPerSecond: at("landing.resends_per_second"),
    },
    host: { busyPoll: at("host.busy_poll"), realtime: at("host.realtime") },
    receipts: { keepMs: at("receipts.keep"), countMax: at("receipts.count_max") },
    log: { level: at("log.level") },
  });
}

/** null without TLS; a file that names only one of the two is rejected. */
function tlsOf(certificate: string | null, key: string | null) {
  return certificate === null || key === null ? null : { certificate, key };
}

export type Config = ReturnType<typeof assemble>;

/** As `assemble`, for the control process: only the keys that it reads. */
export function assembleControl(at: Lookup) {
  return deepFreeze({
    listen: at("control.listen"),
    publicUrl: at("control.public_url"),
    oidc: {
      issuer: at("control.oidc_issuer"),
      clientId: at("control.oidc_client_id"),
      clientSecret: at("control.oidc_client_secret"),
      scope: at("control.oidc_scope"),
    },
    /** For migrations; null: `databaseUrl`. */
    ownerUrl: at("control.owner_url"),
    vaultFile: at("control.vault_file"),
    admins: at("control.admins"),
    sessionIdleMs: at("control.session_idle"),
    sessionMsMax: at("control.session_max"),
    recentLoginMs: at("control.recent_login"),
    regions: at("control.regions"),
    quicRegions: at("control.quic_regions"),
    edges: at("control.edges"),
    explorerUrl: at("control.explorer_url"),
    examples: {
      rpcUrl: at("control.example_rpc_url"),
      transactionUrl: at("control.example_transaction_url"),
      authorityFile: at("control.example_authority"),
    },
    trustedProxies: at("control.trusted_proxies"),
    drainGraceMs: at("control.drain_grace"),
    admin: { listen: at("admin.listen") },
    /** Present, or the configuration is rejected. */
    databaseUrl: at("accounts.database_url") ?? "",
    log: { level: at("log.level") },
  });
}

export type ControlConfig = ReturnType<typeof assembleControl>;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

function deepFreeze<T extends object>(record: T): DeepReadonly<T> {
  for (const value of Object.values(record)) {
    if (typeof value === "object" && value !== null) deepFreeze(value);
  }
  // Freezing adds `readonly` at every depth, which the compiler cannot infer from the loop.
  return Object.freeze(record) as DeepReadonly<T>;
}
