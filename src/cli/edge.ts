/**
 * `edge`: one edge of one region, until a signal ends it. Loads the configuration, refuses what
 * `src/edge/preflight.ts` finds, and starts `src/edge/edge.ts`, which is imported lazily so that
 * the other commands start without its libraries.
 */

import { resolve } from "node:path";
import { setFlagsFromString } from "node:v8";
import { edgeName } from "../config/edge-name.ts";
import { loadConfig } from "../config/load.ts";
import { portsOf } from "../config/ports.ts";
import { formatListen } from "../config/value-types.ts";
import { messageOf, SetupError } from "../core/errors.ts";
import { startClusterWorker } from "../edge/cluster-worker.ts";
import type { Edge } from "../edge/edge.ts";
import { newUpgradeCounts } from "../edge/handover.ts";
import { requireOpenFiles } from "../edge/open-file-limit.ts";
import { loadNative } from "../native/load.ts";
import { ownIdentity } from "../runtime/process-identity.ts";
import { type Command, noPositionals, requiredText } from "./command.ts";
import { linkPredecessor, takeNote } from "./handover/predecessor.ts";
import { spawnSuccessor } from "./handover/spawn.ts";
import { createUpgrade, type SuccessorProcess, type UpgradeStatus } from "./handover/successor.ts";
import { untilStopped, whileStarting } from "./signals.ts";
import { systemdOfProcess, toldToSystemd } from "./systemd.ts";

export const edgeCommand: Command = {
  name: "edge",
  summary: "runs one edge of one region: HTTP and QUIC in, QUIC out",
  usage: ["edge --config FILE"],
  options: { config: { type: "string" } },
  detail: `
SIGUSR2 does what \`touchdown upgrade\` does: a successor is started, which takes over the port.

SIGTERM or SIGINT drains: /readyz turns 503, new work is refused after http.drain_grace,
pending work is finished, exit 0. A second signal stops immediately, and so does one during
the start. SIGHUP reads the keys file, the identity and the certificate again; a
broken file is reported, and what it held before stays.

\`touchdown check --help\` lists the keys of the configuration.
`,
  warnsOfEndedNode: true,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const file = requiredText(given, "config");
    const note = takeNote(process);
    const config = loadConfig(file);
    // Before the modules of an edge are read, which are more files than some limits allow.
    requireOpenFiles();
    // Of 4 MB that transactions leave behind, kilobytes survive: one thread scavenges them in half
    // a millisecond, while helper threads must be woken and waited for (docs/benchmarks.md).
    setFlagsFromString("--no-parallel-scavenge");
    // V8 allocates the objects of a code site in the old generation once many of them survived a
    // scavenge by chance: the cluster node's responses then cost 64 bytes per transaction.
    setFlagsFromString("--no-allocation-site-pretenuring");
    const clusterWorker = startClusterWorker(config);
    const listen = formatListen(config.http.listen);
    const predecessor =
      note === null
        ? null
        : linkPredecessor(note, {
            clock: io.clock,
            parent: process,
            listen,
            quicListen: config.quic.listen,
            inherit: inheritSocket,
            timeoutMs: config.http.upgradeTimeoutMs,
          });
    const counts = predecessor?.counts ?? newUpgradeCounts();
    let status: () => UpgradeStatus | null = () => null;
    // A SIGHUP that the predecessor got since this process read its files is missed here.
    const missed = predecessor === null ? [] : (["SIGHUP"] as const);
    const starting = async (): Promise<Edge> => {
      const { preflight } = await import("../edge/preflight.ts");
      const { problems } = await preflight(config);
      if (problems.length > 0) throw new SetupError([`${file}:`, ...problems].join("\n  "));
      const { startEdge } = await import("../edge/edge.ts");
      const upgrade = (): object => ({
        process: JSON.parse(ownIdentity()),
        config: resolve(file),
        edge: { region: config.region, name: edgeName(config) },
        ports: Object.values(portsOf(config)).flat(),
        timeoutMs: config.http.upgradeTimeoutMs,
        upgrade: status(),
      });
      const base = { clusterWorker, predecessor, upgrade, upgrades: counts };
      const edge = await startEdge(config, base);
      if (edge.ingressThreads > 0) optimizeLater();
      return edge;
    };
    const started = await whileStarting(io.signals, starting, missed).catch((error: unknown) => {
      predecessor?.failed(messageOf(error));
      throw error;
    });
    if (started === null) {
      io.err("edge: stopped while it started");
      return 0;
    }
    const { service: edge, signals } = started;
    const systemd = systemdOfProcess(io);
    const { clock, err } = io;
    const spawn = (): Promise<SuccessorProcess> => {
      const { succeeded, failed } = counts;
      const note = { listen, startedUnixMs: clock.unixMs(), succeeded, failed };
      return spawnSuccessor(note, edge.handover.listener());
    };
    const upgrade = createUpgrade(
      { clock, err, edge: edge.handover, systemd, counts, spawn },
      config.http.upgradeTimeoutMs,
    );
    status = () => upgrade.status;
    // Standard output is the log, one JSON object per line; a port chosen at start goes to standard
    // error.
    const stopped = untilStopped({
      io: { ...io, signals },
      service: toldToSystemd(edge, systemd, () => upgrade.isRetiring),
      graceMs: config.http.drainGraceMs,
      reload: [
        () => edge.reloadKeys(),
        () => edge.reloadIdentity(),
        () => edge.reloadCertificates(),
      ],
      upgrade,
    });
    // A reader of this line may send a signal immediately, so the handler must exist already.
    const { httpAddress, adminAddress, quicAddress } = edge;
    const scheme = config.http.tls === null ? "HTTP" : "HTTPS";
    const quic = quicAddress === null ? "" : `, QUIC on ${quicAddress}`;
    const serves = `${scheme} on ${httpAddress}${quic}`;
    io.err(`edge ${config.region}: ${serves}, admin on ${adminAddress}`);
    systemd.ready(serves);
    predecessor?.serving();
    return await stopped;
  },
};

/** An inherited listening socket, under a descriptor of its own; null: the engine cannot use it. */
function inheritSocket(socket: number): number | null {
  const loaded = loadNative();
  const inherited = loaded.kind === "loaded" ? loaded.native.socketInherit(socket) : 0;
  return inherited > 0 ? inherited : null;
}

/**
 * V8's optimizing compiler, on threads of its own, takes as much of a new edge's processors as its
 * transactions do, for code that ingress threads do not wait for. Ten times later than by default
 * it takes less at a time: p99 of the first ten thousand transactions at 1,000/s is half as long
 * (docs/benchmarks.md). Where the main thread accepts transactions, they wait for that code.
 */
function optimizeLater(): void {
  const isNode20 = process.version.startsWith("v20.");
  setFlagsFromString(
    isNode20 ? "--interrupt-budget=600000" : "--invocation-count-for-turbofan=30000",
  );
}
