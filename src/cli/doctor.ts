/**
 * `doctor`: checks what an edge or the control process depends on and cannot see in its
 * configuration: the host, the cluster, the next leaders, database and provider. Each finding says
 * what is wrong, what it costs and what to do.
 */

import { availableParallelism } from "node:os";
import type { Config, ControlConfig } from "../config/config.ts";
import { loadConfig, loadControl, serviceOf } from "../config/load.ts";
import { SetupError } from "../core/errors.ts";
import { edgeOf, usersOf } from "./check.ts";
import { type Command, type Io, noPositionals, requiredText } from "./command.ts";
import { countsOf, type Finding, findingsOf, linesOf } from "./doctor/finding.ts";
import { endedLine } from "./node-lines.ts";

export const doctorCommand: Command = {
  name: "doctor",
  summary: "checks host, cluster, leaders, database and provider, and says what to change",
  usage: ["doctor --config FILE [--json]"],
  options: { config: { type: "string" }, json: { type: "boolean" } },
  detail: `
For an edge: whether it would start, the host's limits, buffers, idle states, interrupts and
clock, certificates of clients, the node of the cluster, a QUIC handshake with the next
four leaders (nothing is sent), the database and the store of shared limits. For a file with a
table [control]: database, vault and identity provider. Takes about ten seconds at most, and
changes nothing.

  ok       nothing to do
  warning  works, at the cost that is named
  error    does not work
  unknown  cannot be determined here, such as in a container without /sys

Exits with 0 without an error, with 1 if there is one. --json prints one object with the
findings, each with area, check, level, message, cost and fix.
`,
  async run(given, positionals, io) {
    noPositionals(positionals);
    const file = requiredText(given, "config");
    const isJson = given["json"] === true;
    const findings: Finding[] = [];
    for (const { title, find } of areasOf(file, isJson, io)) {
      if (!isJson && io.isTerminal) io.err(`checking ${title} …`);
      const found = await find();
      findings.push(...found);
      if (!isJson) for (const line of [title, ...found.flatMap(linesOf)]) io.out(line);
    }
    const counts = countsOf(findings);
    if (isJson) io.out(JSON.stringify({ counts, findings }, null, 2));
    else io.out(`${counts.error} errors, ${counts.warning} warnings, ${counts.unknown} unknown`);
    return counts.error === 0 ? 0 : 1;
  },
};

/**
 * The checks of the service of this file.
 *
 * @throws SetupError for a configuration that cannot be used; for a reader of JSON it is a finding
 */
function areasOf(file: string, isJson: boolean, io: Io): readonly AreaChecks[] {
  try {
    if (serviceOf(file) === "control") return controlAreas(loadControl(file), io);
    return edgeAreas(file, io);
  } catch (error) {
    if (!isJson || !(error instanceof SetupError)) throw error;
    const { message } = error;
    const finding = findingsOf("start").error("configuration", message, DOES_NOT_START, null);
    return [{ title: "start", find: async () => [finding] }];
  }
}

const DOES_NOT_START = "the service does not start";

interface AreaChecks {
  readonly title: string;
  find(): Promise<readonly Finding[]>;
}

function edgeAreas(file: string, { clock }: Io): readonly AreaChecks[] {
  const config = loadConfig(file);
  return [
    { title: "start", find: () => startFindings(config, clock) },
    {
      title: "host",
      async find() {
        const { hostFindings } = await import("./doctor/host.ts");
        return hostFindings({ root: "/", processors: availableParallelism() }, config);
      },
    },
    ...(hasTls(config) ? [tlsArea(config, clock)] : []),
    { title: "cluster and leaders", find: () => networkFindings(config, clock) },
    {
      title: "accounts",
      async find() {
        const { edgeStoreFindings } = await import("./doctor/stores.ts");
        return await edgeStoreFindings(clock, config);
      },
    },
  ];
}

/** QUIC clients are presented a certificate in any case. */
function hasTls({ http, quic }: Config): boolean {
  return http.tls !== null || quic.listen !== null;
}

function tlsArea({ http, quic }: Config, clock: Io["clock"]): AreaChecks {
  return {
    title: "tls",
    async find() {
      const { tlsFindings } = await import("./doctor/tls.ts");
      return await tlsFindings(clock, http, quic);
    },
  };
}

function controlAreas(config: ControlConfig, { clock }: Io): readonly AreaChecks[] {
  return [
    {
      title: "start",
      async find() {
        const { exposureWarnings } = await import("../config/exposure.ts");
        return [
          ...nodeFindings(clock),
          ...exposureWarnings(config.admin.listen).map(warningFinding),
        ];
      },
    },
    {
      title: "accounts and provider",
      async find() {
        const { controlFindings } = await import("./doctor/stores.ts");
        return await controlFindings(clock, config);
      },
    },
  ];
}

/** What `check` finds, except for what a running edge uses. */
async function startFindings(config: Config, clock: Io["clock"]): Promise<readonly Finding[]> {
  const { preflight } = await import("../edge/preflight.ts");
  const { inUse, warnings, ...found } = await preflight(config);
  const { foreign, other } = await usersOf(edgeOf(config), inUse, config.admin.listen, clock);
  const problems = [...found.problems, ...foreign.map((message) => message + other)];
  const { ok, error } = findingsOf("start");
  const node = nodeFindings(clock);
  if (problems.length + warnings.length === 0) {
    return [...node, ok("configuration", "an edge would start")];
  }
  return [
    ...node,
    ...problems.map((message) => error("configuration", message, "the edge does not start", null)),
    ...warnings.map(warningFinding),
  ];
}

/** Of what a service warns of by itself. */
function warningFinding(message: string): Finding {
  const cost = "the service runs, and warns of it at each start";
  return findingsOf("start").warning("configuration", message, cost, null);
}

function nodeFindings(clock: Io["clock"]): readonly Finding[] {
  const { ok, warning } = findingsOf("start");
  const { node } = process.versions;
  const ended = endedLine(node, clock.unixMs());
  if (ended === null) return [ok("node", `Node ${node} is maintained`)];
  return [warning("node", ended, "known faults of Node stay open", "install a maintained line")];
}

async function networkFindings(config: Config, clock: Io["clock"]): Promise<readonly Finding[]> {
  const { clusterFindings, openCluster, ownIdentity } = await import("./doctor/cluster.ts");
  const { leaderFindings } = await import("./doctor/leaders.ts");
  const side = openCluster(clock, config.cluster);
  try {
    const own = ownIdentity(config.identity.keypair);
    const found = await clusterFindings(side, own, config.send.queuePerLeader);
    // Without the node the next leaders are not known.
    if (found.length === 1) return found;
    return [...found, ...(await leaderFindings(side, config))];
  } finally {
    side.rpc.close();
  }
}
