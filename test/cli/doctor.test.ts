/** `doctor` against the sandbox's cluster: its node, and its leaders over real QUIC. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Finding } from "../../src/cli/doctor/finding.ts";
import { run } from "../../src/cli/run.ts";
import { systemClock } from "../../src/core/clock.ts";
import { listening } from "../../src/sandbox/ports.ts";
import { type Network, startNetwork } from "../support/edge-process.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { freePort } from "../support/ports.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

let network: Network;
beforeAll(async () => {
  network = await startNetwork();
});
afterAll(() => network.stop());

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-doctor-"));
  writeFileSync(join(folder, "keys.toml"), "[plans.Main]\nrate_per_second = 10\nburst = 10\n");
});
afterEach(() => rmSync(folder, { recursive: true }));

function edgeToml(
  { rpcUrl, wsUrl }: { readonly rpcUrl: string; readonly wsUrl: string },
  more = "",
) {
  return `[http]
listen = "127.0.0.1:0"
[admin]
listen = "127.0.0.1:0"
[cluster]
rpc_url = "${rpcUrl}"
ws_url = "${wsUrl}"
[tip]
accounts = ["${TIP}"]
[accounts]
keys_file = "keys.toml"
[send]
bind = "127.0.0.1:0"
${more}`;
}

const BINDS = 'engine = "portable"\nbind = ["127.0.0.1:0", "127.0.0.2:0"]\n';
const KEYPAIR = '[identity]\nkeypair = "absent.json"\n';

async function doctor(text: string, ...options: string[]) {
  const file = join(folder, "touchdown.toml");
  writeFileSync(file, text);
  const io = createFakeIo();
  const code = await run(["doctor", "--config", file, ...options], io);
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

async function findings(text: string) {
  const { code, out } = await doctor(text, "--json");
  const { findings: found }: { readonly findings: readonly Finding[] } = JSON.parse(out);
  const levelOf = (check: string) => found.filter((f) => f.check === check).map((f) => f.level);
  return { code, found, levelOf };
}

describe("doctor", () => {
  it("finds node, slots and leaders of a working cluster, exit code 0", async () => {
    const { code, found, levelOf } = await findings(edgeToml(network));
    expect(found.filter(({ level }) => level === "error")).toEqual([]);
    expect(code).toBe(0);
    for (const check of ["in_step", "slots", "versions"]) {
      expect({ check, levels: levelOf(check) }).toEqual({ check, levels: ["ok"] });
    }
    const handshakes = levelOf("handshake");
    expect(handshakes.length).toBeGreaterThan(0);
    expect(new Set(handshakes)).toEqual(new Set(["ok"]));
    // A fresh identity at each start has no stake.
    expect(levelOf("stake")).toEqual(["warning"]);
  });

  it("names what is wrong, its cost and its fix without a node, exit code 1", async () => {
    const port = await freePort();
    const gone = { rpcUrl: `http://127.0.0.1:${port}`, wsUrl: `ws://127.0.0.1:${port}` };
    const { code, out } = await doctor(edgeToml(gone));
    expect(code).toBe(1);
    expect(out).toMatch(/^error {4}reachable: cluster\.rpc_url did not answer/m);
    expect(out).toMatch(/^ {9}costs: the edge knows no leaders/m);
    expect(out).toMatch(/^ {9}fix: cluster\.rpc_url/m);
    expect(out).toMatch(/^1 errors, \d+ warnings, \d+ unknown$/m);
  });

  it("reports a WebSocket that cannot be reached", async () => {
    const gone = { rpcUrl: network.rpcUrl, wsUrl: `ws://127.0.0.1:${await freePort()}` };
    const { code, levelOf } = await findings(edgeToml(gone));
    expect({ code, slots: levelOf("slots") }).toEqual({ code: 1, slots: ["error"] });
  });

  it("reports a port of another program, which keeps an edge from starting", async () => {
    const server = createServer();
    const port = await listening(server, "127.0.0.1", 0);
    const text = edgeToml(network).replace("127.0.0.1:0", `127.0.0.1:${port}`);
    const { code, found } = await findings(text);
    await new Promise((resolve) => server.close(resolve));
    const errors = found.filter(({ level }) => level === "error");
    expect(errors).toMatchObject([{ area: "start", check: "configuration" }]);
    expect(errors[0]?.message).toContain(`http.listen: cannot listen on 127.0.0.1:${port}`);
    expect(code).toBe(1);
  });

  it("reports what keeps an edge from starting", async () => {
    const { code, found } = await findings(
      edgeToml(network, 'engine = "portable"\n[quic]\nlisten = "127.0.0.1:0"\n'),
    );
    expect(code).toBe(1);
    const [first] = found.filter(({ level }) => level === "error");
    expect(first).toMatchObject({ area: "start", cost: "the edge does not start" });
    expect(first?.message).toContain("quic.listen");
    // QUIC clients cannot verify an edge without a certificate.
    const ofTls = found.filter(({ area }) => area === "tls");
    expect(ofTls.map(({ check, level }) => [check, level])).toEqual([["quic_pair", "warning"]]);
  });

  it.each([
    ["two addresses that the portable engine cannot send from", BINDS, ["warning", "ok"]],
    ["an identity that cannot be read", KEYPAIR, ["unknown", "unknown"]],
  ])("finds what is wrong with the cluster despite %s", async (_, wrong, ofIdentity) => {
    const gone = { rpcUrl: network.rpcUrl, wsUrl: `ws://127.0.0.1:${await freePort()}` };
    const { code, found, levelOf } = await findings(
      edgeToml(gone, wrong).replace(/^bind = "127.*\n/m, ""),
    );
    expect(code).toBe(1);
    expect(levelOf("in_step")).toEqual(["ok"]);
    expect(levelOf("slots")).toEqual(["error"]);
    expect([...levelOf("stake"), ...levelOf("queue")]).toEqual(ofIdentity);
    const why = found.find(({ area, level }) => area === "start" && level === "error")?.message;
    expect(found.filter(({ area }) => area === "leaders")).toEqual([
      expect.objectContaining({
        check: "handshake",
        level: "unknown",
        message: `not tried: ${why}`,
      }),
    ]);
  });

  it("looks at the certificate of QUIC clients, also without one of HTTP clients", async () => {
    const tls = 'certificate = "absent.pem"\nkey = "absent.key"\n';
    const { found } = await findings(
      edgeToml(network, `[quic]\nlisten = "127.0.0.1:0"\n[quic.tls]\n${tls}`),
    );
    const [pair] = found.filter(({ area }) => area === "tls");
    expect(pair).toMatchObject({ check: "quic_pair", level: "error" });
    expect(pair?.message).toMatch(/^quic\.tls\.certificate: .*absent\.pem: it cannot be read/);
  });

  it.each([
    ["is not TOML", "[http", "touchdown.toml"],
    ["has a wrong value", "region = 1\n", "region: "],
    ["lacks what control needs", "[control]\n", "control.public_url: "],
  ])("reports a file that %s as JSON too, exit code 1", async (_, text, part) => {
    const { code, found } = await findings(text);
    expect(code).toBe(1);
    expect(found).toEqual([
      expect.objectContaining({
        area: "start",
        check: "configuration",
        level: "error",
        cost: "the service does not start",
      }),
    ]);
    expect(found[0]?.message).toContain(part);
    // Without --json the command says it like any other.
    const { code: plainCode, out, err } = await doctor(text);
    expect({ plainCode, out }).toEqual({ plainCode: 1, out: "" });
    expect(err).toContain(part);
  });

  it("reports a Node line without fixes", async () => {
    const file = join(folder, "touchdown.toml");
    writeFileSync(file, edgeToml(network));
    const io = createFakeIo({ ...systemClock, unixMs: () => Date.parse("2035-01-01") });
    await run(["doctor", "--config", file], io);
    expect(io.outLines.join("\n")).toMatch(/^warning {2}node: Node \d+ has had no security fixes/m);
  });

  it("reports database and provider of a control file, without its secrets", async () => {
    const port = await freePort();
    const { code, out } = await doctor(
      `[control]\npublic_url = "https://dash.example"\noidc_issuer = "http://127.0.0.1:${port}"\n` +
        'oidc_client_id = "td"\nvault_file = "vault.toml"\n' +
        `[accounts]\ndatabase_url = "postgres://u:s3cret@127.0.0.1:${port}/x"\n` +
        '[admin]\nlisten = "0.0.0.0:0"\n',
    );
    expect(code).toBe(1);
    expect(out).toMatch(/^warning {2}configuration: admin\.listen: 0\.0\.0\.0:0 is every address/m);
    expect(out).toMatch(/^error {4}database: accounts\.database_url: /m);
    expect(out).toMatch(/^warning {2}vault: .*vault\.toml is not there/m);
    expect(out).toMatch(/^error {4}discovery: control\.oidc_issuer: /m);
    expect(out).not.toContain("s3cret");
  });

  it("shows its progress on a terminal only", async () => {
    const port = await freePort();
    const file = join(folder, "touchdown.toml");
    const gone = { rpcUrl: `http://127.0.0.1:${port}`, wsUrl: `ws://127.0.0.1:${port}` };
    writeFileSync(file, edgeToml(gone));
    const terminal = { ...createFakeIo(), isTerminal: true };
    await run(["doctor", "--config", file], terminal);
    expect(terminal.errLines.filter((line) => line.startsWith("checking "))).toHaveLength(4);
    expect((await doctor(edgeToml(gone))).err).not.toContain("checking ");
  });
});
