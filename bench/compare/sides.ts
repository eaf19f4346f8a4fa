/**
 * The processes between generator and leader: the incumbents' design, an edge with everything on,
 * the same edge with other numbers of ingress threads and without verification, the bare path with
 * and without signature verification, and a path without JavaScript. All of them run during the
 * complete comparison and take turns.
 */

import { randomBytes } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeKey } from "../../src/core/encoding.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";
import { type Child, freePort, LIKE_THE_IMAGE, startChild, untilReady } from "../load/children.ts";
import { startLeaderSide } from "./leader-side.ts";
import { type LineProcess, startLines } from "./program.ts";

export const SIDES = [
  "incumbent",
  "everything on",
  "real-time threads",
  "one ingress thread",
  "no ingress threads",
  "no verification",
  "bare",
  "bare unverified",
  "native ingress",
] as const;
/** The edge with one setting changed. */
export const VARIANTS = ["portable engine", "polling"] as const;
/** The same edges from a built checkout of another commit, and the side that each repeats. */
export const BEFORE = {
  "everything on, before": "everything on",
  "no ingress threads, before": "no ingress threads",
  "no verification, before": "no verification",
} as const;
export type SideName = (typeof SIDES)[number] | keyof typeof BEFORE | (typeof VARIANTS)[number];

export interface Side {
  readonly name: SideName;
  /** "host:port" of its HTTP server. */
  readonly address: string;
  readonly pid: number;
  /** The URL of its metrics; null for none. */
  readonly metricsUrl: string | null;
  /** Ends its process. */
  stop(): Promise<void>;
}

export interface Stage {
  readonly sides: readonly Side[];
  readonly key: string;
  /** Generator and leader. */
  readonly ends: LineProcess;
  /** Ends a side's process and starts it again; the side returned takes its place. */
  restart(side: Side): Promise<Side>;
  stop(): Promise<void>;
}

export interface StageOptions {
  /** The folder of the other commit's checkout, for the sides of `BEFORE`. */
  readonly before: string;
  /** Whether the node reports every transaction as landed, or knows none of them. */
  readonly lands: boolean;
  /** As of `LeaderSideOptions`. */
  readonly realtimeEnds: boolean;
}

const READY_MS = 30_000;
/** Transactions that may wait for the leader, equal to the capacity of the incumbent's channel. */
const QUEUE = 4096;

/** Starts the leader, a cluster that names it, and the sides. */
export async function startStage(
  program: string,
  names: readonly SideName[],
  { before, lands, realtimeEnds }: StageOptions = {
    before: "",
    lands: true,
    realtimeEnds: false,
  },
): Promise<Stage> {
  const stops: (() => unknown)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of stops.toReversed()) await end();
  };
  try {
    const folder = mkdtempSync(join(tmpdir(), "touchdown-compare-"));
    const identities = new Map(names.map((name) => [name, freshIdentity()]));
    const incumbent = startLines(program, ["incumbent-key"]);
    const keys = [await incumbent.line(), ...[...identities.values()].map(publicKeyOf)];
    const { ends, ...cluster } = await startLeaderSide(
      program,
      { staked: keys, lands, realtime: realtimeEnds },
      stops,
    );
    const key = `td_${randomBytes(18).toString("base64url")}`;
    const fixture: BenchFixture = {
      ...cluster,
      program,
      before,
      folder,
      key,
      stops,
    };
    const sides: Side[] = [];
    const fileOf = (name: SideName): string => join(folder, `${name.replaceAll(" ", "-")}.json`);
    for (const [name, identity] of identities) {
      writeFileSync(fileOf(name), JSON.stringify([...identity.seed, ...identity.publicKey]));
      sides.push(await startSide(fixture, name, fileOf(name)));
    }
    const restart = async (side: Side): Promise<Side> => {
      await side.stop();
      const fresh = await startSide(fixture, side.name, fileOf(side.name));
      sides[sides.indexOf(side)] = fresh;
      return fresh;
    };
    return { sides, key, ends, restart, stop };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

function publicKeyOf(identity: Identity): string {
  return encodeKey(identity.publicKey);
}

interface BenchFixture {
  readonly program: string;
  readonly before: string;
  readonly folder: string;
  readonly key: string;
  readonly leader: string;
  readonly tipAccount: string;
  readonly rpcUrl: string;
  readonly wsUrl: string;
  readonly stops: (() => unknown)[];
}

function startSide(fixture: BenchFixture, name: SideName, identityFile: string): Promise<Side> {
  switch (name) {
    case "incumbent":
      return startLinesSide(fixture, name, fixture.program, ["incumbent", fixture.leader]);
    case "native ingress": {
      const args = ["native-ingress", fixture.leader, identityFile, fixture.tipAccount];
      return startLinesSide(fixture, name, fixture.program, args);
    }
    case "bare":
    case "bare unverified": {
      const script = join(import.meta.dirname, "bare.ts");
      const args = ["--import", "tsx", script, fixture.leader, identityFile, fixture.tipAccount];
      return startLinesSide(fixture, name, process.execPath, [...args, name]);
    }
    case "everything on, before":
    case "no ingress threads, before":
    case "no verification, before":
      return startEdge(fixture, name, identityFile, BEFORE[name], fixture.before);
    default:
      return startEdge(fixture, name, identityFile);
  }
}

async function startLinesSide(
  fixture: BenchFixture,
  name: SideName,
  program: string,
  args: readonly string[],
): Promise<Side> {
  const child = startLines(program, args);
  fixture.stops.push(() => child.stop());
  const address = await child.line();
  return { name, address, pid: child.pid, metricsUrl: null, stop: () => child.stop() };
}

/** On other machines, the edge's default. */
const THREADS: Readonly<Partial<Record<SideName, string>>> = {
  "one ingress thread": "threads = 1",
  "no ingress threads": "threads = 0",
};

async function startEdge(
  fixture: BenchFixture,
  name: SideName,
  identityFile: string,
  settings: SideName = name,
  tree = ".",
): Promise<Side> {
  const { folder, key, tipAccount, rpcUrl, wsUrl } = fixture;
  const [http, admin] = [await freePort(), await freePort()];
  const file = join(folder, `edge-${name.replaceAll(" ", "-")}`);
  writeFileSync(
    `${file}-keys.toml`,
    "[plans.Load]\nrate_per_second = 1000000\nburst = 1000000\n" +
      `[[keys]]\ntoken = "${key}"\naccount = "load"\nplan = "Load"\n`,
  );
  writeFileSync(
    `${file}.toml`,
    [
      'region = "compare"',
      `[http]\nlisten = "127.0.0.1:${http}"\ndrain_grace = "0s"`,
      THREADS[settings] ?? "",
      `[admin]\nlisten = "127.0.0.1:${admin}"`,
      `[cluster]\nrpc_url = "${rpcUrl}"\nws_url = "${wsUrl}"`,
      `[identity]\nkeypair = "${identityFile}"`,
      `[tip]\naccounts = ["${tipAccount}"]`,
      `[accounts]\nkeys_file = "${file}-keys.toml"`,
      `[decode]\nverify = ${settings !== "no verification"}`,
      `[send]\nengine = "${settings === "portable engine" ? "portable" : "native"}"`,
      `queue_per_leader = ${QUEUE}`,
      `[host]\nbusy_poll = ${settings === "polling"}`,
      `realtime = ${settings === "real-time threads"}\n`,
    ].join("\n"),
  );
  const edge: Child = startChild([
    ...nodeOptions(name),
    ...LIKE_THE_IMAGE,
    join(tree, "dist/main.js"),
    "edge",
    "--config",
    `${file}.toml`,
  ]);
  fixture.stops.push(() => edge.stop());
  await untilReady(edge, `http://127.0.0.1:${admin}/readyz`, READY_MS);
  const metricsUrl = `http://127.0.0.1:${admin}/metrics`;
  const address = `127.0.0.1:${http}`;
  return { name, address, pid: edge.pid, metricsUrl, stop: () => edge.stop() };
}

/** Options for Node in the edge with everything on, for manual profiling. */
function nodeOptions(name: SideName): readonly string[] {
  const given = process.env["COMPARE_NODE_OPTIONS"] ?? "";
  return name === "everything on" && given !== "" ? given.split(" ") : [];
}
