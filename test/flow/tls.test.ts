/**
 * An edge that speaks TLS itself, with clients that verify its certificate: node, curl and openssl,
 * the latter two where they are installed.
 */

import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { native } from "../native/addon.ts";
import { createAuthority, type Issued } from "../support/authority.ts";
import { RAW_PATH, RPC_PATH, SILENT } from "../support/flow.ts";
import { parsePrometheus, seriesValue } from "../support/prometheus.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-tls-"));
const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") };
const caFile = join(folder, "ca.pem");
const authority = createAuthority();
const run = promisify(execFile);
const isInstalled = (program: string, flag: string) => spawnSync(program, [flag]).status === 0;

function write({ certificate, key }: Issued): void {
  writeFileSync(files.certificate, certificate);
  writeFileSync(files.key, key);
}
const fresh = () => authority.issue(Date.now() - 60_000, Date.now() + 86_400_000 * 60);

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly fingerprint: string;
}

describe.skipIf(native === null)("an edge that speaks TLS", () => {
  let sandbox: Sandbox;
  let port = 0;
  beforeAll(async () => {
    writeFileSync(caFile, authority.certificate);
    write(fresh());
    const edge = { http: { threads: 1, tls: files }, send: { engine: "native" } };
    sandbox = await startSandbox({ port: 0, log: SILENT, edge });
    port = Number(new URL(sandbox.url).port);
  });
  afterAll(async () => {
    await sandbox?.stop();
    rmSync(folder, { recursive: true });
  });

  const kept = () => new Agent({ keepAlive: true, maxSockets: 1, ca: authority.certificate });

  /** Sends one transaction as bytes, or any other request. */
  function ask(agent: Agent, path: string = RAW_PATH, body?: Uint8Array | string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = { "api-x-token": sandbox.key };
      const method = path === RAW_PATH || body !== undefined ? "POST" : "GET";
      const asked = request(
        { agent, port, host: "127.0.0.1", path, method, headers },
        (response) => {
          const socket = response.socket as TLSSocket;
          const fingerprint = socket.getPeerCertificate().fingerprint256;
          let text = "";
          response.on("data", (data: Buffer) => {
            text += data;
          });
          response.once("end", () => {
            resolve({ status: response.statusCode ?? 0, body: text, fingerprint });
          });
        },
      );
      asked.once("error", reject);
      asked.end(body ?? (path === RAW_PATH ? sandbox.transaction() : undefined));
    });
  }

  async function metric(name: string, labels: Readonly<Record<string, string>>): Promise<number> {
    const page = await (await fetch(`${sandbox.adminUrl}/metrics`)).text();
    return seriesValue(parsePrometheus(page), name, labels);
  }

  it("lands transactions, and answers what the main thread does, on one connection", async () => {
    const agent = kept();
    const { status, body } = await ask(agent);
    expect([status, JSON.parse(body)]).toMatchObject([200, { success: true }]);
    const { signature } = JSON.parse(body) as { readonly signature: string };
    const receipt = await ask(agent, `/api/v1/transactions/${signature}?wait=landed`);
    expect(JSON.parse(receipt.body)).toMatchObject({ signature, state: "landed" });
    const call = `{"jsonrpc":"2.0","id":1,"method":"getTipAccounts"}`;
    expect((await ask(agent, RPC_PATH, call)).body).toContain(sandbox.tipAccount);
    expect((await ask(agent, "/readyz")).body).toBe('{"status":"ready"}');
    expect((await ask(agent, "/ping")).body).toBe("ok");
    agent.destroy();
  });

  it("closes a client that speaks plain HTTP, and counts it", async () => {
    const before = await metric("touchdown_tls_handshakes_total", { result: "not_tls" });
    const socket = connectPlain({ port, host: "127.0.0.1" });
    socket.write("GET /ping HTTP/1.1\r\nHost: a\r\n\r\n");
    const answer: Buffer[] = [];
    socket.on("data", (data) => answer.push(data));
    await new Promise((closed) => socket.once("close", closed));
    expect(Buffer.concat(answer).toString("latin1")).not.toContain("HTTP");
    // The connection is counted before it is closed.
    expect(await metric("touchdown_tls_handshakes_total", { result: "not_tls" })).toBe(before + 1);
  });

  it("resumes a session by its ticket, in TLS 1.3 and 1.2, and offers only http/1.1", async () => {
    for (const version of ["TLSv1.3", "TLSv1.2"] as const) {
      const open = (session?: Buffer): Promise<readonly [TLSSocket, Buffer]> =>
        new Promise((resolve, reject) => {
          const socket = connect({
            ...{ port, host: "127.0.0.1", ca: authority.certificate },
            ...{ minVersion: version, maxVersion: version, ALPNProtocols: ["h2", "http/1.1"] },
            ...(session !== undefined && { session }),
          });
          socket.once("error", reject);
          socket.once("session", (ticket: Buffer) => resolve([socket, ticket]));
          // A resumed session of TLS 1.2 comes with no new ticket in node.
          socket.once("secureConnect", () => {
            if (socket.isSessionReused()) resolve([socket, Buffer.alloc(0)]);
          });
        });
      const [first, ticket] = await open();
      expect(first.isSessionReused()).toBe(false);
      const [second] = await open(ticket);
      expect([second.isSessionReused(), second.alpnProtocol]).toEqual([true, "http/1.1"]);
      expect(second.getProtocol()).toBe(version);
      first.destroy();
      second.destroy();
    }
  });

  it("refuses a client that offers another protocol alone", async () => {
    const socket = connect({
      ...{ port, host: "127.0.0.1", ca: authority.certificate, ALPNProtocols: ["h2"] },
    });
    const error = await new Promise<Error>((failed) => socket.once("error", failed));
    expect(error.message).toMatch(/no application protocol/i);
  });

  it("serves another certificate to new connections, under load, without a failure", async () => {
    const agents = Array.from({ length: 4 }, kept);
    const before = (await Promise.all(agents.map((agent) => ask(agent)))).map(
      ({ fingerprint }) => fingerprint,
    );
    const statuses: number[] = [];
    let isOver = false;
    const load = agents.map(async (agent, index) => {
      while (!isOver) {
        // No limit of the key applies to these, however many there are until the last reload.
        const { status, fingerprint } = await ask(agent, "/ping");
        statuses.push(status);
        // An open connection continues with the certificate that it began with.
        if (fingerprint !== before[index]) throw new Error("a connection was replaced");
      }
    });
    const seen = new Set(before);
    for (let round = 0; round < 5; round += 1) {
      write(fresh());
      sandbox.edge.reloadCertificates();
      const agent = kept();
      const { status, fingerprint } = await ask(agent);
      agent.destroy();
      statuses.push(status);
      seen.add(fingerprint);
    }
    writeFileSync(files.key, "no key");
    expect(() => sandbox.edge.reloadCertificates()).toThrow(/holds no private key/);
    const agent = kept();
    const last = await ask(agent);
    agent.destroy();
    isOver = true;
    await Promise.all(load);
    for (const each of agents) each.destroy();
    expect([seen.size, seen.has(last.fingerprint)]).toEqual([6, true]);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    const loads = (result: string) =>
      metric("touchdown_tls_certificate_loads_total", { protocol: "http", result });
    expect(await loads("ok")).toBe(6);
    expect(await loads("failed")).toBe(1);
  });

  it.skipIf(!isInstalled("curl", "--version"))("serves curl, which offers HTTP/2 too", async () => {
    const { stdout } = await run("curl", [
      ...["--silent", "--cacert", caFile, "--http2", "--write-out", " %{http_version}"],
      ...["--data-binary", `{"jsonrpc":"2.0","id":1,"method":"getHealth"}`],
      `https://127.0.0.1:${port}/`,
    ]);
    expect(stdout).toBe('{"jsonrpc":"2.0","result":"ok","id":1} 1.1');
    const elsewhere = ["--connect-to", "::127.0.0.1:", `https://other.example:${port}/ping`];
    const distrusted = run("curl", ["--silent", "--cacert", caFile, ...elsewhere]);
    await expect(distrusted).rejects.toMatchObject({ code: 60 });
  });

  it.skipIf(!isInstalled("openssl", "version"))("resumes a session of openssl", async () => {
    for (const version of ["-tls1_2", "-tls1_3"]) {
      const session = join(folder, `session${version}`);
      const args = ["s_client", "-connect", `127.0.0.1:${port}`, "-CAfile", caFile, version];
      const ask = async (more: readonly string[]): Promise<string> => {
        const asked = run("openssl", [...args, "-ign_eof", ...more]);
        asked.child.stdin?.end("GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        return (await asked).stdout;
      };
      const first = await ask(["-sess_out", session]);
      expect(first).toMatch(/Verif\w+( return code: 0|: OK)/);
      expect(first).toContain("HTTP/1.1 200 OK");
      expect(await ask(["-sess_in", session])).toMatch(/^Reused, TLSv1\.[23]/m);
    }
  });
});
