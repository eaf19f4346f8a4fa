/**
 * Each program of `examples/`, run against an edge through a proxy that counts its connections: it
 * warms up, keeps its connection, repeats what the rate limit refused, and gives up on what no
 * repetition changes. A program whose language is not installed is left out, and its title says so.
 */

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { connect, createServer, type Server } from "node:net";
import { homedir, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REJECTIONS } from "../src/core/errors.ts";
import { BRISK_KEY, type Flow, startFlow, WIDE_KEY } from "./support/flow.ts";
import { ROOT, readSource } from "./support/source-tree.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-examples-"));
const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
const CARGO = ["run", "--release", "--quiet", "--locked", "--manifest-path"];

/** Where each source says that a request takes 10 s at most, and a shorter time for a test. */
const TIMEOUTS: Readonly<Record<string, readonly [string, string]>> = {
  "examples/send.ts": ["AbortSignal.timeout(10_000)", "AbortSignal.timeout(200)"],
  "examples/send.py": ["timeout=10", "timeout=0.2"],
  "examples/send.go": ["Timeout: 10 * time.Second", "Timeout: 200 * time.Millisecond"],
  "examples/send.sh": ["--retry 4 --max-time 10", "--retry 0 --max-time 0.2"],
  "examples/rust/src/main.rs": [".timeout(Duration::from_secs(10))", ""],
};

/** The tool, its arguments before the files, and the source. */
const PROGRAMS: readonly (readonly [string, readonly string[], string])[] = [
  [process.execPath, ["node_modules/tsx/dist/cli.mjs", "examples/send.ts"], "examples/send.ts"],
  ["python3", ["examples/send.py"], "examples/send.py"],
  ["go", ["run", "examples/send.go"], "examples/send.go"],
  ["bash", ["examples/send.sh"], "examples/send.sh"],
  ["cargo", [...CARGO, "examples/rust/Cargo.toml", "--"], "examples/rust/src/main.rs"],
];

const hasTool = (tool: string): boolean =>
  spawnSync(tool, [tool === "go" ? "version" : "--version"]).status === 0;

let flow: Flow;
let proxy: Server;
let url = "";
let connectionCount = 0;
beforeAll(async () => {
  flow = await startFlow();
  const port = Number(new URL(flow.url).port);
  proxy = createServer((client) => {
    connectionCount += 1;
    const edge = connect(port, "127.0.0.1");
    client.pipe(edge).pipe(client);
    for (const socket of [client, edge]) socket.on("error", () => socket.destroy());
  });
  url = await listening(proxy);
});
afterAll(async () => {
  proxy?.close();
  await flow?.stop();
  rmSync(folder, { recursive: true });
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

/** An edge that answers `/ping`, and each submission as given; they count from 1. */
async function edgeThat(submit: (response: ServerResponse, count: number) => void) {
  let count = 0;
  const server = createHttpServer((request, response) => {
    request.resume().on("end", () => {
      if (request.url === "/ping") return response.end("pong");
      count += 1;
      return submit(response, count);
    });
  });
  const edgeUrl = await listening(server);
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { edgeUrl, stop };
}

function fileOf(name: string, bytes: Uint8Array): string {
  const file = join(folder, name);
  writeFileSync(file, bytes);
  return file;
}

async function ran(tool: string, args: readonly string[], key: string, target = url) {
  connectionCount = 0;
  const child = spawn(tool, args, {
    cwd: ROOT,
    env: {
      ...process.env,
      ...{ URL: target, KEY: key, CARGO_TARGET_DIR: join(cache, "touchdown/example-target") },
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (data: Buffer) => {
    out += data.toString();
  });
  child.stderr.on("data", (data: Buffer) => {
    err += data.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, out: out.trim().split("\n"), err, connectionCount };
}

describe.each(PROGRAMS)("the example for %s", (tool, args, source) => {
  const isPresent = hasTool(tool);
  const left = isPresent ? "" : `, not tested here: ${tool} is not installed`;

  it.skipIf(!isPresent)(
    `sends over one connection, and again what was refused${left}`,
    async () => {
      const sent = [flow.tipped(), flow.tipped()];
      const files = sent.map(({ bytes }, index) => fileOf(`${index}.bin`, bytes));
      let isRepeated = false;
      // If the machine stalls between the two, the second is allowed at once.
      for (let tries = 0; tries < 10 && !isRepeated; tries += 1) {
        const { code, out, err, connectionCount } = await ran(tool, [...args, ...files], BRISK_KEY);
        expect({ code, out, err }).toMatchObject({
          code: 0,
          out: sent.map(({ signature }) => signature),
        });
        expect(connectionCount).toBe(1);
        // curl repeats without a word.
        isRepeated = tool === "bash" || err.includes("rate_limited");
      }
      expect(isRepeated).toBe(true);
    },
  );

  it.skipIf(!isPresent)(`gives up on what no repetition changes${left}`, async () => {
    const file = fileOf("none.bin", Buffer.from("no transaction"));
    const { code, err } = await ran(tool, [...args, file], WIDE_KEY);
    expect(code).toBe(1);
    expect(err.match(/undecodable/g)?.length ?? 0).toBeLessThanOrEqual(3);
    expect(err).toContain("undecodable");
  });

  it.skipIf(!isPresent)(`prints what was accepted before the edge went away${left}`, async () => {
    const { edgeUrl, stop } = await edgeThat((response, count) => {
      if (count > 1) return response.destroy();
      return response.end(JSON.stringify({ success: true, signature: "accepted" }));
    });
    const files = ["first.bin", "second.bin"].map((name) => fileOf(name, Buffer.from(name)));
    const { code, out } = await ran(tool, [...args, ...files], WIDE_KEY, edgeUrl);
    stop();
    expect({ isFailed: code !== 0, out }).toEqual({ isFailed: true, out: ["accepted"] });
  });

  it.skipIf(!isPresent)(`gives up on an edge that does not answer${left}`, async () => {
    const [timeout, shorter] = TIMEOUTS[source] ?? ["", ""];
    const { text } = readSource(source);
    expect(text.split(timeout)).toHaveLength(2);
    // Compiling a changed copy would take too long.
    if (tool === "cargo") return;
    const { edgeUrl, stop } = await edgeThat(() => undefined);
    // Outside this package only this ending makes a module of it.
    const name = basename(source).replace(/\.ts$/, ".mts");
    const program = fileOf(name, Buffer.from(text.replace(timeout, shorter)));
    const words = args.map((word) => (word === source ? program : word));
    const file = fileOf("unanswered.bin", Buffer.from("unanswered"));
    const { code, out } = await ran(tool, [...words, file], WIDE_KEY, edgeUrl);
    stop();
    expect({ isFailed: code !== 0, out }).toEqual({ isFailed: true, out: [""] });
  });

  it("repeats exactly the reasons that the table calls retryable", () => {
    const { text } = readSource(source);
    for (const [reason, { retryable }] of Object.entries(REJECTIONS)) {
      const word = new RegExp(`\\b${reason}\\b`);
      expect({ reason, named: word.test(text) }).toEqual({ reason, named: retryable });
    }
  });
});
