import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Log } from "../../src/core/log.ts";
import { trustAuthorities } from "../../src/edge/extra-ca-certs.ts";
import { AUTHORITIES_BYTES_MAX } from "../../src/edge/limits.ts";
import { native } from "../native/addon.ts";
import { createAuthority } from "../support/authority.ts";
import { startEdgeProcess, startNetwork, untilReady } from "../support/edge-process.ts";
import { untilResponse } from "../support/flow.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-authorities-"));
afterAll(() => rmSync(folder, { recursive: true }));

const [first, second] = [createAuthority().certificate, createAuthority().certificate];
const BROKEN = "-----BEGIN CERTIFICATE-----\n####\n-----END CERTIFICATE-----\n";

function fileOf(text: string): string {
  const file = join(folder, "ca.pem");
  writeFileSync(file, text);
  return file;
}

/** What is logged about a file, and with which numbers. */
function toldOf(file: string | null, engine = native): readonly unknown[] {
  const logEntries: unknown[] = [];
  const say = (level: string) => (fields: object, message: string) => {
    const { file: named, ...rest } = { file: "", ...fields };
    expect(named).toBe(file);
    logEntries.push(level, rest, message);
  };
  const log: Log = { info: say("info"), warn: say("warn"), error: say("error") };
  if (engine !== null) trustAuthorities(engine, file, log);
  return logEntries;
}

describe.skipIf(native === null)("extra certificate authorities", () => {
  it("are those in the file, whatever else it contains", () => {
    const [good, some] = [
      "NODE_EXTRA_CA_CERTS: trusted in addition to Mozilla's authorities",
      "NODE_EXTRA_CA_CERTS: not all can be read",
    ];
    expect(toldOf(null)).toEqual([]);
    expect(toldOf(fileOf(first))).toEqual(["info", { trusted: 1 }, good]);
    const both = `of the house:\r\n${first.replaceAll("\n", "\r\n")}\n\n${second.trimEnd()}`;
    expect(toldOf(fileOf(both))).toEqual(["info", { trusted: 2 }, good]);
    for (const text of [BROKEN + first, first + BROKEN, first.replaceAll("CE", "X509 CE") + first])
      expect(toldOf(fileOf(text))).toEqual(["warn", { trusted: 1, found: 2 }, some]);
  });

  it("are empty for an unusable file, which is logged and is not fatal", () => {
    const none = "NODE_EXTRA_CA_CERTS: holds no certificate that can be read";
    const half = first.slice(0, first.length / 2);
    for (const text of ["", "nothing", BROKEN, half])
      expect(toldOf(fileOf(text))).toEqual(["warn", { trusted: 0 }, none]);
    const unread = "NODE_EXTRA_CA_CERTS: cannot be read";
    expect(toldOf(join(folder, "none"))).toEqual(["warn", { cause: "ENOENT" }, unread]);
  });

  it("are not read from a non-regular file, which could block the start forever", () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    for (const path of [pipe, folder])
      expect(toldOf(path)).toEqual(["warn", {}, "NODE_EXTRA_CA_CERTS: is no file and is not read"]);
  });

  it("are read from a file of the maximum size, not from a larger one", () => {
    const file = fileOf(first);
    truncateSync(file, AUTHORITIES_BYTES_MAX);
    expect(toldOf(file)[1]).toEqual({ trusted: 1 });
    truncateSync(file, AUTHORITIES_BYTES_MAX + 1);
    expect(toldOf(file)[1]).toEqual({ size: AUTHORITIES_BYTES_MAX + 1 });
  });
});

describe.each(native === null ? (["portable"] as const) : (["portable", "native"] as const))(
  "an edge with the %s engine",
  (engine) => {
    it("connects to a node whose certificate NODE_EXTRA_CA_CERTS makes trusted", async () => {
      const network = await startNetwork(1);
      const authority = createAuthority();
      const rpc = await authority.before(Number(new URL(network.rpcUrl).port));
      const ws = await authority.before(Number(new URL(network.wsUrl).port));
      const [rpcUrl, wsUrl] = [`https://127.0.0.1:${rpc.port}`, `wss://127.0.0.1:${ws.port}`];
      const environment = { NODE_EXTRA_CA_CERTS: fileOf(authority.certificate) };
      const edge = await startEdgeProcess({ ...network, rpcUrl, wsUrl }, { engine, environment });
      try {
        await untilReady(edge);
        await untilResponse(
          "slots over the WebSocket",
          async () => [...(await edge.metrics()).values()].flatMap(({ samples }) => samples),
          (samples) => samples.some(({ labels }) => labels["source"] === "slotsUpdates"),
        );
        const { bytes } = network.tipped();
        expect(await edge.post(bytes)).toBe(200);
      } finally {
        await edge.remove();
        for (const each of [rpc, ws]) each.stop();
        await network.stop();
      }
    });
  },
);
