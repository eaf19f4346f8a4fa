/**
 * What decides, before anything is started, whether an edge starts with this configuration on this
 * machine. `edge` refuses to start for what it finds, and `check` prints the same.
 *
 * It leaves nothing behind: files are only read, and each address is bound for a moment. An address
 * or a journal that a process uses now is no error of the configuration: that process may be the
 * edge that the new one replaces. It is returned apart.
 */

import { createSocket, type Socket } from "node:dgram";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { availableParallelism } from "node:os";
import { journalHolder } from "../accounts/keys/journal-lock.ts";
import type { Config } from "../config/config.ts";
import { exposureWarnings } from "../config/exposure.ts";
import { formatListen, type ListenAddress } from "../config/value-types.ts";
import { systemClock } from "../core/clock.ts";
import { codeOf, SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { busyPollOf, portableBindOf } from "../engine/transport.ts";
import { workersOf } from "../engine/validation.ts";
import { chooseEngine, type EngineChoice } from "../native/choose.ts";
import { certificateFilesOf, expiryWarning, readCertificate } from "./certificate.ts";
import { readIdentity } from "./identity.ts";
import { loadKeys } from "./keys.ts";
import { ingressThreadsOf } from "./native-ingress.ts";
import { connectionsWithin, requireOpenFiles, systemLimits } from "./open-file-limit.ts";

export interface Preflight {
  /** Why an edge would not start here, one sentence each that begins with the key. */
  readonly problems: readonly string[];
  /** What another process uses now, in the same form. */
  readonly inUse: readonly string[];
  /** What an edge would warn of at its start. */
  readonly warnings: readonly string[];
}

/** Never rejects for what is wrong with the configuration or the machine. */
export async function preflight(
  config: Config,
  loadHttpLibrary: () => Promise<unknown> = () => import("../http/uws.ts"),
): Promise<Preflight> {
  const problems: string[] = [];
  const inUse: string[] = [];
  const warnings: string[] = [];
  /** The result of a step of the start; null if it would refuse to go on. */
  function attempt<T>(step: () => T): T | null {
    try {
      return step();
    } catch (error) {
      problems.push(setupMessageOf(error));
      return null;
    }
  }

  const { accounts, identity, send, http, admin, quic } = config;
  attempt(() => requireOpenFiles());
  attempt(() => readIdentity(identity.keypair));
  attempt(() => (accounts.keysFile === null ? null : loadKeys(accounts.keysFile)));
  if (accounts.databaseUrl !== null) {
    const holder = attempt(() => journalHolder(accounts.journal));
    if (holder !== null) {
      inUse.push(`accounts.journal: ${accounts.journal} is in use by process ${holder}`);
    }
  }
  const log: Log = { info() {}, warn: (_, message) => void warnings.push(message), error() {} };
  const engine = attempt(() => chooseEngine(send.engine, log));
  if (engine !== null) checkThreads(config, engine, log, attempt);
  warnings.push(...exposureWarnings(admin.listen));
  const unixMs = systemClock.unixMs();
  for (const tls of Object.values(certificateFilesOf(config))) {
    const certificate = attempt(() =>
      tls === null ? null : readCertificate(tls, engine?.native ?? null, unixMs),
    );
    if (tls === null || certificate === null) continue;
    const expiring = expiryWarning(tls, certificate, unixMs);
    if (expiring !== null) warnings.push(expiring);
  }
  const unloadable = await loadHttpLibrary().then(() => null, setupMessageOf);
  if (unloadable !== null) problems.push(unloadable);
  const { databaseUrl } = accounts;
  if (databaseUrl !== null) {
    // Imported lazily: an edge with a keys file does without its library.
    const { requireConnectable } = await import("../accounts/database/database.ts");
    attempt(() => requireConnectable("accounts.database_url", databaseUrl));
  }
  const bound = [
    ...(await tryListen({ "http.listen": http.listen, "admin.listen": admin.listen })),
    ...(await tryDatagrams(send.bind, quic.listen)),
  ];
  for (const { isInUse, message } of bound) (isInUse ? inUse : problems).push(message);
  return { problems, inUse, warnings };
}

/** @throws any other error than a `SetupError` */
function setupMessageOf(error: unknown): string {
  if (!(error instanceof SetupError)) throw error;
  return error.message;
}

/** What the engine and this machine's processors and permissions must allow. */
function checkThreads(
  config: Config,
  engine: EngineChoice,
  log: Log,
  attempt: (step: () => void) => void,
) {
  const processors = availableParallelism();
  attempt(() => busyPollOf(config.host, engine, processors));
  attempt(() => {
    const ingressThreads = ingressThreadsOf(config, engine, processors);
    const workers = ingressThreads + (engine.native === null ? workersOf(config) : 0);
    const hasIngressThreads = ingressThreads > 0;
    connectionsWithin(config.http.connections, { workers, hasIngressThreads, log });
    if (hasIngressThreads && config.host.realtime) {
      requireRealtime(systemLimits(), processStatus());
    }
  });
  if (engine.name === "portable") attempt(() => portableBindOf(config.send.bind));
}

/**
 * Takes the texts of `/proc/self/limits` and `/proc/self/status`. @throws SetupError if this
 * process may not have threads of real-time priority
 */
export function requireRealtime(limits: string, status: string): void {
  const limit = /^Max realtime priority\s+(\S+)/m.exec(limits)?.[1];
  const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? "0";
  const isCapable = ((BigInt(`0x${capabilities}`) >> CAP_SYS_NICE) & 1n) === 1n;
  // Where the system states no limit, the start itself finds out.
  if (isCapable || limit === undefined || limit === "unlimited" || Number(limit) >= 1) return;
  throw new SetupError(
    "host.realtime: the system denies real-time priority: it requires CAP_SYS_NICE, or a " +
      "limit of 1 or more (LimitRTPRIO of systemd, --ulimit rtprio of Docker)",
  );
}

/** Linux `capability.h`, 2026-11. */
const CAP_SYS_NICE = 23n;

function processStatus(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch {
    // Not Linux, or no /proc: the start itself finds out.
    return "";
  }
}

/** Why an address cannot be bound. */
export interface BindFault {
  /** Whether only another process is in the way. */
  readonly isInUse: boolean;
  readonly message: string;
}

/** Binds both listeners together, because one may be in the way of the other. */
export async function tryListen(
  listeners: Readonly<Record<string, ListenAddress>>,
): Promise<readonly BindFault[]> {
  const faults: BindFault[] = [];
  const servers: Server[] = [];
  try {
    for (const [key, listen] of Object.entries(listeners)) {
      const server = createServer();
      const code = await bindCode((report) => {
        server.once("error", report);
        server.listen({ ...listen, exclusive: true }, () => report(null));
      });
      if (code === null) servers.push(server);
      else {
        const other = overlapped(listen, listeners, key, servers);
        faults.push(bindFault(`${key}: cannot listen on ${formatListen(listen)}`, code, other));
      }
    }
    return faults;
  } finally {
    await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
  }
}

/** The key of the other listener if it was bound and has the port that this one wants. */
function overlapped(
  { port }: ListenAddress,
  listeners: Readonly<Record<string, ListenAddress>>,
  key: string,
  bound: readonly Server[],
): string | null {
  const other = Object.entries(listeners).find(([name, listen]) => {
    return name !== key && listen.port === port && port !== 0 && bound.length > 0;
  });
  return other?.[0] ?? null;
}

/** `other`: the key that has the port already, within this configuration; null: none. */
function bindFault(cannot: string, code: string, other: string | null): BindFault {
  if (code !== "EADDRINUSE") return { isInUse: false, message: `${cannot}: ${meaning(code)}` };
  if (other === null) return { isInUse: true, message: `${cannot}: the port is in use` };
  return { isInUse: false, message: `${cannot}: ${other} has that port at this address too` };
}

/**
 * Binds all addresses of QUIC together, because one may be in the way of another: those of
 * connections to leaders, and the one that clients reach.
 */
async function tryDatagrams(
  binds: readonly ListenAddress[],
  listen: ListenAddress | null,
): Promise<readonly BindFault[]> {
  const wanted = [
    // As the engine does: IPv6 alone, so that IPv4 may have the same port.
    ...binds.map((at) => ({ at, ipv6Only: true, cannot: "send.bind: cannot send from" })),
    ...(listen === null
      ? []
      : [{ at: listen, ipv6Only: false, cannot: "quic.listen: cannot listen on" }]),
  ];
  const faults: BindFault[] = [];
  const bound: { readonly socket: Socket; readonly at: ListenAddress }[] = [];
  for (const { at, ipv6Only, cannot } of wanted) {
    const isIpv6 = at.host.includes(":");
    const type = isIpv6 ? "udp6" : "udp4";
    const socket = createSocket({ type, ipv6Only: isIpv6 && ipv6Only });
    const code = await bindCode((report) => {
      socket.once("error", report);
      socket.bind({ address: at.host, port: at.port, exclusive: true }, () => report(null));
    });
    const other = bound.find((each) => each.at.port === at.port && at.port !== 0);
    if (code === null) bound.push({ socket, at });
    else {
      socket.close();
      faults.push(
        bindFault(`${cannot} ${formatListen(at)}`, code, other === undefined ? null : "send.bind"),
      );
    }
  }
  await Promise.all(
    bound.map(({ socket }) => new Promise<void>((closed) => socket.close(() => closed()))),
  );
  return faults;
}

/** The error code with which binding fails; null if it succeeds. */
async function bindCode(bind: (report: (error: Error | null) => void) => void) {
  const error = await new Promise<Error | null>((resolve) => bind(resolve));
  return error === null ? null : (codeOf(error) ?? error.message);
}

function meaning(code: string): string {
  return MEANINGS[code] === undefined ? code : `${MEANINGS[code]} (${code})`;
}

const MEANINGS: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: "the address does not belong to this machine",
  EACCES: "ports below 1024 need CAP_NET_BIND_SERVICE or root",
  ENOTFOUND: "the name has no address",
  EAI_AGAIN: "the name cannot be resolved now",
  EAFNOSUPPORT: "this machine has no addresses of that family",
};
