/**
 * Real clients against a real edge: what they send arrives, and for each rejection the error that
 * their user catches states the reason.
 */

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDefaultRpcTransport, createSolanaRpcFromTransport } from "@solana/kit";
import { Connection } from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import {
  BRISK_KEY,
  ENGINE,
  type Flow,
  RAW_PATH,
  RPC_PATH,
  runProgram,
  SILENT,
  slowKey,
  startFlow,
  THREADS,
  WIDE_KEY,
} from "../support/flow.ts";
import { until } from "../support/wait.ts";

const MAIN = join(import.meta.dirname, "../../dist/main.js");
const UNKNOWN_KEY = "flow-test-key-that-nobody-has";

let flow: Flow;
/** An edge whose leaders are all gone. */
let deserted: Flow;
let folder = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-clients-"));
  flow = await startFlow();
  deserted = await startFlow({ leaderCount: 1 });
  for (const leader of deserted.sandbox.leaders) await leader.stop();
  const peers = () => deserted.sandbox.edge.readiness().checks.find(({ name }) => name === "live");
  await until("the connections to have ended", () => peers()?.ok === false);
});
afterAll(async () => {
  await flow?.stop();
  await deserted?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** How one client sends; rejects with the error that its user would catch. */
type Send = (url: string, key: string, bytes: Uint8Array) => Promise<string>;

const web3: Send = (url, key, bytes) => {
  const connection = new Connection(url + RPC_PATH, {
    httpHeaders: { "api-x-token": key },
    disableRetryOnRateLimit: true,
  });
  return connection.sendRawTransaction(bytes, { skipPreflight: true, maxRetries: 0 });
};

function kitRpc(url: string, key: string) {
  const transport = createDefaultRpcTransport({
    url: url + RPC_PATH,
    headers: { "api-x-token": key },
  });
  return createSolanaRpcFromTransport(transport);
}

const kit: Send = (url, key, bytes) => {
  const wire = Buffer.from(bytes).toString("base64");
  // The brand of an encoded transaction, which only kit's own encoder produces.
  const encoded = wire as Parameters<ReturnType<typeof kitRpc>["sendTransaction"]>[0];
  return kitRpc(url, key)
    .sendTransaction(encoded, { encoding: "base64", skipPreflight: true, maxRetries: 0n })
    .send();
};

/** curl on the binary endpoint; rejects with everything that it printed. */
const curl: Send = async (url, key, bytes) => {
  const file = join(folder, `transaction-${randomUUID()}`);
  writeFileSync(file, bytes);
  const target = url + RAW_PATH;
  const headers = ["-H", `api-x-token: ${key}`, "-H", "content-type: application/octet-stream"];
  const { out } = await runProgram("curl", [
    "-sS",
    target,
    ...headers,
    "--data-binary",
    `@${file}`,
  ]);
  const response: { success: boolean; signature?: string } = JSON.parse(out);
  if (!response.success) throw new Error(out);
  return response.signature ?? "";
};

/** curl on the JSON-RPC endpoint. */
const curlRpc: Send = async (url, key, bytes) => {
  const file = join(folder, `call-${randomUUID()}`);
  const params = [Buffer.from(bytes).toString("base64"), { encoding: "base64" }];
  writeFileSync(file, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params }));
  const headers = ["-H", `api-x-token: ${key}`, "-H", "content-type: application/json"];
  const { out } = await runProgram("curl", ["-sS", url + RPC_PATH, ...headers, "-d", `@${file}`]);
  const response: { result?: string } = JSON.parse(out);
  if (response.result === undefined) throw new Error(out);
  return response.result;
};

/** The `touchdown send` command; rejects with its human-readable output. */
const command: Send = async (url, key, bytes) => {
  const file = join(folder, `sent-${randomUUID()}`);
  writeFileSync(file, bytes);
  const args = [MAIN, "send", file, "--url", url, "--key", key];
  const { code, out, err } = await runProgram(process.execPath, args);
  if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
  return out.trim();
};

const CLIENTS: readonly (readonly [string, Send])[] = [
  ["@solana/web3.js", web3],
  ["@solana/kit", kit],
  ["curl, binary", curl],
  ["curl, JSON-RPC", curlRpc],
  ["touchdown send", command],
];

/** Everything that an error shows when printed completely, as in a user's log. */
function shown(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const context = "context" in error ? JSON.stringify(error.context, bigintAsText) : "";
  return `${error.name} ${error.message} ${context}`;
}

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

async function caught(sending: Promise<unknown>): Promise<string> {
  return await sending.then(
    (value) => `nothing: it resolved to ${String(value)}`,
    (error: unknown) => shown(error),
  );
}

describe.each(CLIENTS)("%s", (name, send) => {
  const place = CLIENTS.findIndex(([other]) => other === name);

  it("gets the signature, and the leader the bytes", async () => {
    const { bytes, signature } = flow.tipped();
    expect(await send(flow.url, WIDE_KEY, bytes)).toBe(signature);
    await until("the bytes at a leader", () => flow.deliveriesOf(bytes) > 0);
  });

  it("receives unauthorized for an unknown key", async () => {
    const text = await caught(send(flow.url, UNKNOWN_KEY, flow.tipped().bytes));
    expect(text).toContain("the API key is unknown or revoked");
  });

  it("receives the rate limit, with its numbers", async ({ task }) => {
    const key = slowKey(place + CLIENTS.length * (task.result?.retryCount ?? 0));
    await send(flow.url, key, flow.tipped().bytes);
    const text = await caught(send(flow.url, key, flow.tipped().bytes));
    expect(text).toContain("the rate limit of plan Slow is 0.001 requests a second");
    expect(text).toContain("the next one is let through in");
  });

  it("receives what could not be decoded", async () => {
    const { bytes } = flow.tipped();
    const text = await caught(send(flow.url, WIDE_KEY, bytes.subarray(0, bytes.length - 1)));
    expect(text).toContain("transaction could not be decoded: it ends after");
  });

  it("receives the decode error of a transaction above the network's limit", async () => {
    const { bytes } = flow.tipped();
    const padded = Buffer.concat([bytes, Buffer.alloc(1300)]);
    const text = await caught(send(flow.url, WIDE_KEY, padded));
    expect(text).toContain("transaction could not be decoded");
    expect(text).toContain(`it has ${padded.length} bytes`);
  });

  it("receives the found and the required tip", async () => {
    const tips = [{ to: flow.sandbox.tipAccount, lamports: 400_000 }];
    const text = await caught(send(flow.url, WIDE_KEY, flow.tipped({ tips }).bytes));
    expect(text).toContain("400000");
    expect(text).toContain("1000000");
    expect(text).toMatch(/tip/);
  });

  it("receives the error of a missing tip", async () => {
    const text = await caught(send(flow.url, WIDE_KEY, flow.tipped({ tips: [] }).bytes));
    expect(text).toMatch(/tip/);
    expect(text).toContain("1000000");
  });

  it("receives the error of an invalid signature", async () => {
    const bytes = Uint8Array.from(flow.tipped().bytes);
    bytes[10] = (bytes[10] ?? 0) ^ 1;
    const text = await caught(send(flow.url, WIDE_KEY, bytes));
    // kit replaces our message for this code with its own; the data still contains ours.
    expect(text).toMatch(/signature.*does not verify/);
    if (name === "@solana/kit") expect(text).toContain('"reason":"signature_invalid"');
  });

  it("receives the error of an oversized body", async () => {
    // The binary endpoint accepts at most 16 KiB, the other one 128 KiB.
    const text = await caught(send(flow.url, WIDE_KEY, Buffer.alloc(110_000, 1)));
    if (name === "touchdown send") expect(text).toContain("at most 65536 are read");
    else expect(text).toMatch(/the body has \d+ bytes, at most \d+ are accepted here/);
  });

  it("receives no_leader when no leader can be reached", async () => {
    const text = await caught(send(deserted.url, WIDE_KEY, deserted.tipped().bytes));
    expect(text).toContain("no leader can be reached now");
    expect(deserted.received).toEqual([]);
  });
});

describe("the position of the reason", () => {
  it("web3.js repeats the complete body of a response that is not 200", async () => {
    const text = await caught(web3(flow.url, UNKNOWN_KEY, flow.tipped().bytes));
    expect(text).toContain("401");
    expect(text).toContain('"reason":"unauthorized"');
  });

  it("kit has the message in the status line, and nothing of the body", async () => {
    const error: unknown = await kit(flow.url, UNKNOWN_KEY, flow.tipped().bytes).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      context: {
        statusCode: 401,
        message:
          "Unauthorized: the API key is unknown or revoked, or its account is " +
          "disabled; its issuer can see which",
      },
    });
    expect(error).toMatchObject({ message: expect.stringContaining("unknown or revoked") });
  });

  it("curl shows the reason's name on both endpoints", async () => {
    const { bytes } = flow.tipped({ tips: [] });
    for (const send of [curl, curlRpc]) {
      expect(await caught(send(flow.url, WIDE_KEY, bytes))).toContain('"reason":"tip_missing"');
    }
  });

  it("the command of this project names the reason first and exits with 1", async () => {
    const text = await caught(command(flow.url, UNKNOWN_KEY, flow.tipped().bytes));
    expect(text).toMatch(/exit code 1: unauthorized: the API key/);
  });
});

describe("other calls of real clients", () => {
  it("web3.js receives the error of unsupported params and methods", async () => {
    const connection = new Connection(flow.url + RPC_PATH, {
      httpHeaders: { "api-x-token": WIDE_KEY },
    });
    expect(await caught(connection.sendEncodedTransaction("not base64!"))).toMatch(/base64/);
    expect(await caught(connection.getSlot())).toMatch(/getSlot|sendTransaction/);
  });

  it("kit receives the error of unsupported params and methods", async () => {
    const rpc = kitRpc(flow.url, WIDE_KEY);
    // As a user without types would write it.
    const wrong = "not base64!" as Parameters<typeof rpc.sendTransaction>[0];
    const sending = rpc.sendTransaction(wrong, { encoding: "base64" }).send();
    expect(await caught(sending)).toMatch(/base64/);
    expect(await caught(rpc.getSlot().send())).toMatch(/getSlot|sendTransaction/);
  });

  it("kit sends base58 as well", async () => {
    const { base58, signature } = flow.tipped();
    const rpc = kitRpc(flow.url, WIDE_KEY);
    // The brand again; this method expects base58 when no encoding is given.
    const encoded = base58 as Parameters<typeof rpc.sendTransaction>[0];
    const config = { encoding: "base58" } as unknown as { encoding: "base64" };
    expect(await rpc.sendTransaction(encoded, config).send()).toBe(signature);
  });

  it("web3.js succeeds after its automatic retries of a limited request", async () => {
    const connection = new Connection(flow.url + RPC_PATH, {
      httpHeaders: { "api-x-token": BRISK_KEY },
    });
    const consoleError = vi.spyOn(console, "error").mockImplementation(() => {});
    const isLogged = () => consoleError.mock.calls.join("\n").includes("429 Too Many Requests");
    // If the machine stalls between two of them, the second is allowed immediately.
    while (!isLogged()) {
      const { bytes, signature } = flow.tipped();
      expect(await connection.sendRawTransaction(bytes, { skipPreflight: true })).toBe(signature);
    }
    consoleError.mockRestore();
  });

  it("kit requests health without a key", async () => {
    const transport = createDefaultRpcTransport({ url: flow.url });
    expect(await createSolanaRpcFromTransport(transport).getHealth().send()).toBe("ok");
  });
});

describe("clients of other senders", () => {
  /** What curl prints for a POST. */
  async function post(url: string, body: string | Uint8Array, ...headers: readonly string[]) {
    const file = join(folder, `body-${randomUUID()}`);
    writeFileSync(file, body);
    const lines = headers.flatMap((header) => ["-H", header]);
    const { out } = await runProgram("curl", ["-sS", url, ...lines, "--data-binary", `@${file}`]);
    return out;
  }
  const sendCall = (base64: string, config: object) =>
    JSON.stringify({
      id: "1",
      jsonrpc: "2.0",
      method: "sendTransaction",
      params: [base64, config],
    });
  const JSON_TYPE = "Content-Type: application/json";

  it("web3.js sends to the bare address with each header, and reads the version", async () => {
    for (const header of [{ "x-api-key": WIDE_KEY }, { authorization: `Bearer ${WIDE_KEY}` }]) {
      const connection = new Connection(flow.url, { httpHeaders: header });
      const { bytes, signature } = flow.tipped();
      const sent = connection.sendRawTransaction(bytes, {
        skipPreflight: true,
        maxRetries: 0,
        preflightCommitment: "processed",
        minContextSlot: 1,
      });
      expect(await sent).toBe(signature);
      expect(await connection.getVersion()).toMatchObject({ "solana-core": "4.2.2" });
    }
  });

  it("web3.js and kit send with the key in the address", async () => {
    const url = `${flow.url}/fast?api-key=${WIDE_KEY}`;
    const first = flow.tipped();
    const sent = new Connection(url).sendRawTransaction(first.bytes, { skipPreflight: true });
    expect(await sent).toBe(first.signature);
    const rpc = createSolanaRpcFromTransport(createDefaultRpcTransport({ url }));
    const second = flow.tipped();
    // The brand of an encoded transaction.
    const encoded = second.base64 as Parameters<typeof rpc.sendTransaction>[0];
    const config = { encoding: "base64", skipPreflight: true, minContextSlot: 1n } as const;
    expect(await rpc.sendTransaction(encoded, config).send()).toBe(second.signature);
    expect(await rpc.getVersion().send()).toMatchObject({ "solana-core": "4.2.2" });
  });

  it("curl sends as to Helius Sender", async () => {
    const { base64, signature } = flow.tipped();
    const config = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
    const url = `${flow.url}/fast?api-key=${WIDE_KEY}&swqos_only=true`;
    expect(JSON.parse(await post(url, sendCall(base64, config), JSON_TYPE)).result).toBe(signature);
  });

  it("curl sends as to Jito, and reads the tip accounts", async () => {
    const { base64, signature } = flow.tipped();
    const key = `x-api-key: ${WIDE_KEY}`;
    const body = sendCall(base64, { encoding: "base64" });
    expect(JSON.parse(await post(flow.url, body, JSON_TYPE, key)).result).toBe(signature);
    const ask = '{"jsonrpc":"2.0","id":1,"method":"getTipAccounts","params":[]}';
    const tips = JSON.parse(await post(flow.url, ask, JSON_TYPE));
    expect(tips.result).toEqual([flow.sandbox.tipAccount]);
  });

  it("curl sends text with the key in the address, as a browser without a preflight", async () => {
    const { base64, signature } = flow.tipped();
    const url = `${flow.url}${RAW_PATH}?api-key=${WIDE_KEY}`;
    const out = await post(url, base64, "Content-Type: text/plain");
    expect(JSON.parse(out)).toEqual({ success: true, signature });
  });
});

describe("the command printed by the sandbox", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await startSandbox({
      port: 0,
      log: SILENT,
      edge: { http: { threads: THREADS }, send: { engine: ENGINE } },
    });
  });
  afterAll(() => sandbox?.stop());

  it("works as pasted, and its transaction lands", async () => {
    const first = sandbox.lines.findIndex((line) => /^curl .*sendTransaction/.test(line));
    const pasted = sandbox.lines.slice(first, first + 3).join("\n");
    const { code, out, err } = await runProgram("bash", ["-c", pasted]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const signature: string = JSON.parse(out).result;
    expect(signature).toMatch(/^[1-9A-HJ-NP-Za-km-z]{64,88}$/);
    await until("its landing", () => sandbox.cluster.statusOf(signature) !== null);
    expect(sandbox.cluster.statusOf(signature)?.err).toBeNull();

    const line = sandbox.lines.find((text) => text.includes("/api/v1/transactions/SIGNATURE"));
    const asked = await runProgram("bash", ["-c", (line ?? "").replace("SIGNATURE", signature)]);
    expect(JSON.parse(asked.out)).toMatchObject({ signature, submissions: 1 });
  });
});
