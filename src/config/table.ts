/**
 * The table of configuration keys: kind, default, bounds and one sentence each. Types, error
 * messages, `check`, the `--help` of commands and docs/configuration.md are derived from it. A path
 * is `section.key`; its environment variable is `TOUCHDOWN_SECTION_KEY`.
 *
 * Decision: docs/decisions/0035-configuration-is-one-table.md
 */

import {
  DELIVERIES_QUEUED_MAX,
  HTTP_CONNECTIONS_MAX,
  LEADERS_CONNECTED_MAX,
  QUIC_CONNECTIONS_MAX,
  QUIC_CONNECTIONS_PER_ACCOUNT_MAX,
} from "../core/limits.ts";
import { addressList } from "./address-list.ts";
import { INGRESS_THREADS_MAX, SEND_ADDRESSES_MAX } from "./limits.ts";
import {
  headerSecret,
  hostUrl,
  identities,
  namedList,
  networks,
  origin,
  secret,
  storeUrl,
  text,
  urlTemplate,
} from "./site-types.ts";
import { tipAccounts } from "./tip-accounts.ts";
import {
  accounts,
  boolean,
  choice,
  duration,
  integer,
  integerOrAuto,
  type Kind,
  type ListenAddress,
  listen,
  name,
  path,
  type Raw,
  remote,
  url,
} from "./value-types.ts";

/** The long-running commands that use a configuration. */
export type Service = "edge" | "control";

export interface Key<T> {
  readonly kind: Kind<T>;
  /** In the file's notation; null for none. */
  readonly fallback: Raw | null;
  /** The service that requires the key; null if it is optional or has a default. */
  readonly neededBy: Service | null;
  /** One sentence, without a full stop. */
  readonly description: string;
}

/** A key with a default. */
function key<T>(kind: Kind<T>, fallback: Raw, description: string): Key<T> {
  return { kind, fallback, neededBy: null, description };
}

/** An optional key; its value is null if absent. */
function optional<T>(kind: Kind<T>, description: string): Key<T | null> {
  const kindOrNull: Kind<T | null> = {
    ...kind,
    show: (value) => (value === null ? "" : kind.show(value)),
  };
  return { kind: kindOrNull, fallback: null, neededBy: null, description };
}

/** A key that one of the services requires. */
function required<T>(neededBy: Service, kind: Kind<T>, description: string): Key<T> {
  return { kind, fallback: null, neededBy, description };
}

const LAMPORTS_MAX = 1_000_000_000_000;
export const KEYS = {
  region: key(name(), "local", "Name of this edge's region, as it stands in metrics and answers"),
  name: optional<string>(name(), "Name of this edge within its region; absent: the host's name"),

  "http.listen": key(listen(), "127.0.0.1:8080", "Where clients submit transactions"),
  "http.drain_grace": key(
    duration("0s", "10m"),
    "75s",
    "How long, after a signal to stop, work is still taken while `/readyz` answers 503: until " +
      "DNS or a load balancer sends no new clients",
  ),
  "http.upgrade_timeout": key(
    duration("1s", "10m"),
    "1m",
    "How long a successor may take to become ready; else it is ended, and this process serves on",
  ),
  "http.request_deadline": key(
    duration("10ms", "60s"),
    "5s",
    "How long an answer may take once the request's body is complete",
  ),
  "http.connections": key(
    integer(1, 1_000_000),
    HTTP_CONNECTIONS_MAX,
    "Connections of clients at a time, as open files allow; above it the one idle for longest is " +
      "closed for a new one, with `http.threads`; a new one is closed without those threads, or " +
      "if none is idle for 1 s",
  ),
  "http.connections_per_address": key(
    integerOrAuto(1, 1_000_000),
    "auto",
    "Of these, what one address (an IPv6 /64) may hold with `http.threads`; a further one is " +
      "closed; auto: a quarter; raise it behind a proxy; without those threads there is no bound",
  ),
  "http.read_timeout": key(
    duration("1s", "10m"),
    "10s",
    "How long a request's head, and its body, may take with `http.threads`; else it is 8 to 12 s",
  ),
  "http.idle_timeout": key(
    duration("2s", "1h"),
    "75s",
    "How long an idle connection stays open with `http.threads`; else it is 8 to 12 s",
  ),
  "http.threads": key(
    integerOrAuto(0, INGRESS_THREADS_MAX),
    "auto",
    "Threads that take transactions and send them by themselves, with the native engine; 0: the " +
      "main thread does all of it; auto: with that engine and 2 processors or more 1 for each 4 " +
      "of them, at least 2 and at most 4, but with `host.realtime` at most 1 for each 2 " +
      "processors, and none with `host.busy_poll`",
  ),
  "http.tls.certificate": optional<string>(
    path(),
    "The certificate chain that clients are presented, PEM, the server's own first: with it " +
      "`http.listen` speaks TLS 1.3 and 1.2; needs `http.threads`; read again when it changes",
  ),
  "http.tls.key": optional<string>(path(), "The private key of that certificate, PEM, unencrypted"),

  "admin.listen": key(
    listen(),
    "127.0.0.1:9090",
    "Where `/metrics`, `/livez` and `/readyz` are served; never public",
  ),

  "quic.listen": optional<ListenAddress>(
    listen(true),
    "Where transactions are taken over QUIC (UDP), by all `http.threads`; absent: not at all",
  ),
  "quic.connections": key(
    integer(1, 100_000),
    QUIC_CONNECTIONS_MAX,
    "Connections of QUIC clients at a time; a further one is refused",
  ),
  "quic.connections_per_address": key(
    integerOrAuto(1, 100_000),
    "auto",
    "Of these, what one address (an IPv6 /64) may hold; auto: a quarter",
  ),
  "quic.connections_per_account": key(
    integer(1, 100_000),
    QUIC_CONNECTIONS_PER_ACCOUNT_MAX,
    "Of these, what one account may hold; a further one is closed with `rate_limited`",
  ),
  "quic.drain_to": optional<ListenAddress>(
    remote(),
    "The address, as of another region, that this edge names to `touchdown/1` clients when it " +
      "drains; absent: it names none",
  ),
  "quic.tls.certificate": optional<string>(
    path(),
    "The certificate chain that `touchdown/1` clients are presented, as `http.tls.certificate`; " +
      "absent: that of `http.tls`; with neither a self-signed one, to which none sends an API key",
  ),
  "quic.tls.key": optional<string>(path(), "The private key of that certificate, PEM, unencrypted"),

  "cluster.rpc_url": key(
    url(["http", "https"]),
    "http://127.0.0.1:8899",
    "JSON-RPC of the node: leader schedule, addresses, statuses, heights and blockhashes, and " +
      "slots while the WebSocket is silent",
  ),
  "cluster.ws_url": key(
    url(["ws", "wss"]),
    "ws://127.0.0.1:8900",
    "WebSocket of the node, for slots",
  ),
  "cluster.grpc_url": optional<string>(
    hostUrl(),
    "Yellowstone gRPC, for slots, landings and block heights as they happen; absent: without it",
  ),
  "cluster.grpc_token": optional<string>(
    headerSecret(),
    "What the gRPC server is sent as `x-token`; absent: none",
  ),

  "identity.keypair": optional<string>(
    path(),
    "The identity that leaders see, as `solana-keygen` writes it; absent: a fresh one, unstaked",
  ),

  "tip.accounts": required("edge", tipAccounts(64), "Accounts of which one must be paid the tip"),
  "tip.lamports_min": key(integer(1, LAMPORTS_MAX), 1_000_000, "The least tip, in lamports"),

  "accounts.keys_file": optional<string>(path(), "The file of plans and keys"),
  "accounts.database_url": optional<string>(
    url(["postgres", "postgresql"]),
    "The database of accounts, instead of a keys file",
  ),
  "accounts.journal": key(
    path(),
    "touchdown-keys.journal",
    "Where the last good keys of the database are kept, for a start while it is down",
  ),
  "accounts.usage_period": key(
    duration("1s", "10m"),
    "10s",
    "How often what each key did is written to the database; its last use is as late and as exact",
  ),

  "limits.redis_url": optional<string>(
    storeUrl(),
    "Valkey or Redis, through which edges share the limits of plans that ask for it; needs " +
      "accounts.database_url",
  ),
  "limits.edges": key(
    integer(1, 1000),
    5,
    "Edges that a shared limit is divided by until the store reports their number",
  ),

  "decode.inline": key(
    choice(["auto", "never", "always"]),
    "auto",
    "Whether the main thread of the portable engine decodes transactions itself: the first of " +
      "each event loop turn (auto), never, or always; the native one decodes on the thread that " +
      "accepts them",
  ),
  "decode.workers": key(
    integerOrAuto(0, 64),
    "auto",
    "Threads that check transactions for the portable engine; auto: one less than there are " +
      "processors, and at least 1",
  ),
  "decode.verify": key(boolean(), true, "Whether signatures are verified before sending"),

  "send.engine": key(
    choice(["auto", "native", "portable"]),
    "auto",
    "Which QUIC engine sends; auto: the native one where it is built",
  ),
  "send.leaders": key(
    integer(1, 16),
    2,
    "How many leaders, the current one first, a transaction is fanned out to",
  ),
  "send.deny": key(
    accounts(1024, 0),
    [],
    "Identities of leaders that nothing is sent to; the next leader is taken instead",
  ),
  "send.warm_windows": key(
    integer(1, 64),
    4,
    "How many leaders ahead connections are opened to; one more for each that is out of reach",
  ),
  "send.connections": key(
    integer(1, 4096),
    LEADERS_CONNECTED_MAX,
    "Connections to leaders at a time, at most",
  ),
  "send.queue_per_leader": key(
    integer(1, 65_536),
    DELIVERIES_QUEUED_MAX,
    "Deliveries that wait for one leader, at most; above it the one that pays least is dropped",
  ),
  "send.delivery_ttl": key(
    duration("10ms", "60s"),
    "800ms",
    "How long a delivery waits for its leader before it is dropped; above 2 s a later copy of " +
      "the transaction may reach the leader together with it",
  ),
  "send.bind": key(
    addressList(SEND_ADDRESSES_MAX),
    "0.0.0.0:0",
    "The local UDP addresses that transactions leave from, over which connections are spread; " +
      "the native engine reaches leaders at IPv6 addresses only from one of IPv6",
  ),

  "host.busy_poll": key(
    boolean(),
    false,
    "Whether threads look for work instead of sleeping: the HTTP thread always, the native " +
      "engine's I/O thread for 1 ms after the last; needs 4 processors or more",
  ),
  "host.realtime": key(
    boolean(),
    false,
    "Whether the threads of `http.threads` run at real-time priority, before all others of the " +
      "host that have none; needs two processors for each, and CAP_SYS_NICE or a limit for it " +
      "(`LimitRTPRIO=1`)",
  ),

  "landing.count_max": key(
    integer(100, 1_000_000),
    65_536,
    "Transactions whose end is awaited at a time; above it the oldest ends as `table_full`",
  ),
  "landing.track_for": key(
    duration("10s", "1h"),
    "2m",
    "How long a transaction is tracked and resent at most: one with a durable nonce, which does " +
      "not expire, and any other if the 150 blocks of its blockhash's life take longer",
  ),
  "landing.poll": key(
    duration("100ms", "10s"),
    "400ms",
    "How often the cluster is asked what became of young transactions; older ones less often",
  ),
  "landing.resends_per_second": key(
    integer(0, 1_000_000),
    2_000,
    "Transactions sent again a second, at most, those that pay most first; 0: only by their sender",
  ),

  "receipts.keep": key(
    duration("10s", "1h"),
    "15m",
    "How long the receipt of a transaction can be asked for",
  ),
  "receipts.count_max": key(
    integer(100, 10_000_000),
    100_000,
    "Receipts held at a time; above it the oldest goes first",
  ),

  "control.listen": key(
    listen(),
    "127.0.0.1:8088",
    "The address at which `control` serves the dashboard, behind the proxy that ends TLS",
  ),
  "control.public_url": required(
    "control",
    origin(),
    "The scheme and host at which browsers find the dashboard; requests never override it",
  ),
  "control.oidc_issuer": required(
    "control",
    url(["https", "http"]),
    "The identity provider, by OpenID Connect discovery; http on loopback only",
  ),
  "control.oidc_client_id": required("control", text(256), "What the provider calls this service"),
  "control.oidc_client_secret": optional<string>(
    secret(),
    "The secret that goes with it; absent: a public client, PKCE alone",
  ),
  "control.oidc_scope": key(
    text(256),
    "openid profile email",
    "The claims that the provider is asked for; names and addresses are shown, never matched",
  ),
  "control.vault_file": required(
    "control",
    path(),
    "The keys that encrypt API keys at rest; on the control host alone",
  ),
  "control.owner_url": optional<string>(
    url(["postgres", "postgresql"]),
    "The accounts database as its owner, to migrate it; absent: `accounts.database_url`",
  ),
  "control.admins": key(
    identities(64),
    [],
    "Operators, each as the provider's issuer, a space and the subject",
  ),
  "control.session_idle": key(
    duration("1m", "24h"),
    "30m",
    "How long a session lives without a request",
  ),
  "control.session_max": key(duration("5m", "720h"), "12h", "How long a session lives at most"),
  "control.recent_login": key(
    duration("10s", "24h"),
    "10m",
    "How young a login must be to make, change, end or reveal a key, and for an operator's changes",
  ),
  "control.regions": key(
    namedList("url", 64),
    [],
    "What Connect offers, each as `name=URL` of a region's HTTP endpoint",
  ),
  "control.quic_regions": key(
    namedList("address", 64),
    [],
    "Where the same regions take QUIC, each as `name=host:port`",
  ),
  "control.edges": key(
    namedList("url", 256),
    [],
    "The admin listeners that are asked for receipts, each as `name=URL`",
  ),
  "control.explorer_url": optional<string>(
    urlTemplate("{signature}"),
    "Where a transaction can be looked at, with `{signature}` in the signature's place",
  ),
  "control.example_rpc_url": optional<string>(
    url(["http", "https"]),
    "The RPC that the programs on Connect ask for a blockhash; absent: the public one of mainnet",
  ),
  "control.example_transaction_url": optional<string>(
    url(["http", "https"]),
    "Where those programs get a signed, tipped transaction as bytes, as the sandbox has them",
  ),
  "control.example_authority": optional<string>(
    path(),
    "The PEM file with the authority of the regions' certificates, where the system of those who " +
      "run the programs does not trust it, as in the sandbox",
  ),
  "control.trusted_proxies": key(
    networks(64),
    [],
    "Networks, as CIDR, of the proxies in front of it; their `X-Forwarded-For` is trusted",
  ),
  "control.drain_grace": key(
    duration("0s", "10m"),
    "5s",
    "How long, after a signal to stop, `control` still answers while `/readyz` says 503",
  ),

  "log.level": key(
    choice(["debug", "info", "warn", "error", "silent"]),
    "info",
    "The least level of the lines that are logged, as JSON, to standard output",
  ),
} as const;

export type KeyPath = keyof typeof KEYS;

/** The type of a key's value. */
export type ValueOf<P extends KeyPath> = (typeof KEYS)[P] extends Key<infer T> ? T : never;

/** Whether a service uses the key; it checks the others too. */
export function isReadBy(service: Service, keyPath: KeyPath): boolean {
  if (service === "edge") return !keyPath.startsWith("control.");
  return READ_BY_CONTROL.some((start) => keyPath.startsWith(start));
}

const READ_BY_CONTROL = ["control.", "admin.", "accounts.database_url", "log."];

/** All paths in table order. */
export const KEY_PATHS: readonly KeyPath[] = Object.keys(KEYS).filter(isKeyPath);

export function isKeyPath(text: string): text is KeyPath {
  return Object.hasOwn(KEYS, text);
}

/** `http.drain_grace` is overridden by `TOUCHDOWN_HTTP_DRAIN_GRACE`. */
export function environmentName(keyPath: string): string {
  return ENVIRONMENT_PREFIX + keyPath.replaceAll(".", "_").toUpperCase();
}

export const ENVIRONMENT_PREFIX = "TOUCHDOWN_";
