/** Every curl command of the documents, run as written against an edge. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { ENGINE, runProgram, SILENT, THREADS } from "../support/flow.ts";
import { linesOf, snippets } from "../support/snippets.ts";
import { until } from "../support/wait.ts";

let sandbox: Sandbox;
let folder = "";
/** The signature of a transaction that landed. */
let signature = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-documents-"));
  sandbox = await startSandbox({
    port: 0,
    log: SILENT,
    edge: { http: { threads: THREADS }, send: { engine: ENGINE } },
  });
  signature = await sent();
  const ended = await fetch(
    `${sandbox.url}/api/v1/transactions/${signature}?wait=landed&timeout=60s`,
    {
      headers: { "api-x-token": sandbox.key },
    },
  );
  expect(await ended.json()).toMatchObject({ state: "landed" });
});
afterAll(async () => {
  await sandbox?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends another transaction; returns its signature. */
async function sent(): Promise<string> {
  const response = await fetch(`${sandbox.url}/api/v1/sendRawTransaction`, {
    method: "POST",
    headers: { "api-x-token": sandbox.key },
    body: Uint8Array.from(sandbox.transaction()),
  });
  const answer: { readonly signature: string } = JSON.parse(await response.text());
  return answer.signature;
}

/** The command with its placeholders filled in, for `sh -c`. */
function scriptOf(command: string): string {
  const bytes = sandbox.transaction();
  writeFileSync(join(folder, "transaction.bin"), bytes);
  const filled = command
    .replace("<base64>", Buffer.from(bytes).toString("base64"))
    .replace("<signature>", signature)
    .replace("https://fra.example.com", sandbox.url);
  return `cd '${folder}' && URL='${sandbox.url}' KEY='${sandbox.key}' && exec ${filled}`;
}

const commands = snippets
  .filter(({ language }) => language === "sh")
  .flatMap((snippet) => linesOf(snippet).map((line) => [snippet.place, line] as const))
  .filter(([, line]) => line.startsWith("curl "));

/** What the response to each command contains. */
const ANSWERS: readonly (readonly [RegExp, (answer: unknown) => void])[] = [
  [/\/sendRawTransaction[?"]/, (it) => expect(it).toMatchObject({ success: true })],
  [
    /\/(sendTransaction|fast)"/,
    (it) => expect(it).toMatchObject({ id: 1, result: expect.any(String) }),
  ],
  [/\/readyz$/, (it) => expect(it).toEqual({ status: "ready" })],
  [/\/transactions\/<signature>/, (it) => expect(it).toMatchObject({ signature, state: "landed" })],
  [
    /\/transactions\?state=landed/,
    (it) =>
      expect(it).toMatchObject({
        transactions: expect.arrayContaining([expect.objectContaining({ signature })]),
      }),
  ],
];

describe("a curl command in the documents", () => {
  it("is one of those run here", () => {
    expect(commands.length).toBeGreaterThanOrEqual(6);
  });

  it.each(commands.filter(([, line]) => !line.startsWith("curl -sSN")))(
    "is answered: %s %s",
    async (_, command) => {
      const { code, out, err } = await runProgram("sh", ["-c", scriptOf(command)]);
      expect(err).toBe("");
      expect(code).toBe(0);
      const check = ANSWERS.find(([form]) => form.test(command))?.[1];
      expect(check, "say in ANSWERS what this command's answer holds").toBeDefined();
      check?.(JSON.parse(out));
    },
  );

  it.each(commands.filter(([, line]) => line.startsWith("curl -sSN")))(
    "streams receipts: %s %s",
    async (_, command) => {
      const env = { ...process.env, no_proxy: "127.0.0.1" };
      const child = spawn("sh", ["-c", scriptOf(command)], { env });
      let out = "";
      child.stdout.on("data", (part) => {
        out += String(part);
      });
      try {
        await until("the stream to be open", () => sandbox.edge.readiness().ok);
        const known = await sent();
        await until("its event", () => out.includes(known));
        expect(out).toMatch(/^id: \S+\nevent: receipt\ndata: \{/m);
      } finally {
        child.kill();
      }
    },
  );
});
