import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectionsWithin, filesMaxOf } from "../../src/edge/open-file-limit.ts";
import { RECEIPT_LONG_POLLS_MAX, RECEIPT_STREAMS_MAX } from "../../src/http/limits.ts";
import { SILENT } from "../support/flow.ts";

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             94967                94967                processes
Max open files            4096                 20000                files
`;
const MODULE = join(import.meta.dirname, "../../dist/edge/open-file-limit.js");

/** What a process with this file limit makes of `wanted`, and whether it logs that. */
function under(filesMax: number, wanted: number, workers = 0, hasIngressThreads = false): unknown {
  const script = `
    const { connectionsWithin } = await import(${JSON.stringify(MODULE)});
    let said = null;
    const log = { info() {}, error() {}, warn: (facts) => { said = facts; } };
    const use = { workers: ${workers}, hasIngressThreads: ${hasIngressThreads}, log };
    const most = connectionsWithin(${wanted}, use);
    console.log(JSON.stringify([most, said]));`;
  const command = `ulimit -n ${filesMax}; exec "$0" --input-type=module -e "$1"`;
  const { stdout, stderr } = spawnSync("sh", ["-c", command, process.execPath, script], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describe("the open-file limit", () => {
  it("is read from the system's text, and is null where it has none", () => {
    expect(filesMaxOf(LIMITS)).toBe(4096);
    const unlimited = LIMITS.replace("4096     ", "unlimited");
    expect([unlimited, "", "Max open files"].map(filesMaxOf)).toEqual([
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
    ]);
  });

  it("reserves what an edge needs besides client connections, and reports it", () => {
    const facts = { wanted: 20_000, connections: 344, files: 600 };
    expect(under(600, 20_000)).toEqual([{ clients: 344, upstreamConnections: 0 }, facts]);
    expect(under(100, 20_000)).toEqual([
      { clients: 50, upstreamConnections: 0 },
      { ...facts, connections: 50, files: 100 },
    ]);
  });

  it("reserves what the worker threads need", () => {
    const facts = { wanted: 20_000, connections: 688, files: 1_200 };
    expect(under(1_200, 20_000, 64)).toEqual([{ clients: 688, upstreamConnections: 0 }, facts]);
  });

  it("reserves two descriptors for each proxied connection of ingress threads", () => {
    const facts = { wanted: 20_000, connections: 172, files: 600 };
    expect(under(600, 20_000, 0, true)).toEqual([{ clients: 172, upstreamConnections: 86 }, facts]);
    expect(under(600, 172, 0, true)).toEqual([{ clients: 172, upstreamConnections: 86 }, null]);
    expect(under(600, 1, 0, true)).toEqual([{ clients: 1, upstreamConnections: 86 }, null]);
  });

  it("leaves ten thousand clients beside all long polls and streams in 20,000 files", () => {
    const upstreamConnections = RECEIPT_LONG_POLLS_MAX + RECEIPT_STREAMS_MAX + 128;
    const facts = { wanted: 20_000, connections: 10_268, files: 20_000 };
    expect(under(20_000, 20_000, 1, true)).toEqual([
      { clients: 10_268, upstreamConnections },
      facts,
    ]);
    const enough = { clients: 10_000, upstreamConnections };
    expect(under(20_000, 10_000, 1, true)).toEqual([enough, null]);
  });

  it("changes nothing where it is high enough", () => {
    expect(under(600, 344)).toEqual([{ clients: 344, upstreamConnections: 0 }, null]);
    const use = { workers: 0, log: SILENT };
    expect(connectionsWithin(1, { ...use, hasIngressThreads: false })).toEqual({
      clients: 1,
      upstreamConnections: 0,
    });
  });
});
