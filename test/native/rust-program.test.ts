/**
 * The Rust program of the page Connect, compiled and run as pasted against a sandbox. Runs with the
 * native engine's suite, because that one needs cargo anyway. The crate is used without TLS, which
 * the program does not need on loopback: 24 crates, 6 s of one processor, once per machine.
 */

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXAMPLE_PATH } from "../../src/sandbox/cluster-http.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { ENGINE, SILENT } from "../support/flow.ts";
import { ROOT } from "../support/source-tree.ts";

const PACKAGE = join(ROOT, "test", "native", "rust-program");
const TARGET = process.env["CARGO_TARGET_DIR"] ?? join(homedir(), ".cache/touchdown/native-target");
const run = promisify(execFile);

/** The reader's values that the page fills in; see its `Filling`. */
interface Filling {
  readonly url: string;
  readonly key: string;
  readonly exampleUrl: string | null;
}

/** The program's text, from the module that the page itself uses. */
async function programOf(filling: Filling): Promise<string> {
  const path = join(ROOT, "src", "control", "pages", "lib", "snippets.js");
  const { snippets } = await import(pathToFileURL(path).href);
  const none = { tipAccount: "", tipLamports: 0, rpcUrl: null, quic: null };
  const all: readonly { name: string; before: string; code: (filling: object) => string }[] =
    snippets({ ...none, ...filling });
  const rust = all.find(({ name }) => name === "rust");
  if (rust === undefined) throw new Error("the page shows no program for Rust");
  expect(rust.before).toContain("cargo add ureq@2");
  return rust.code({ ...none, ...filling });
}

/** Compiles and runs a program; returns its output. @throws with cargo's errors */
async function runRust(text: string, files: Readonly<Record<string, Uint8Array>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "rust-program-"));
  cpSync(PACKAGE, folder, { recursive: true });
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src", "main.rs"), text);
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  const env = { ...process.env, CARGO_TARGET_DIR: TARGET };
  const { stdout } = await run("cargo", ["run", "--quiet", "--locked"], { cwd: folder, env });
  return stdout.trim();
}

describe.runIf(ENGINE === "native")("the Rust program of the page Connect", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0, log: SILENT });
  });
  afterAll(() => sandbox?.stop());

  /** The final state of the transaction that the program printed. */
  async function endOf(output: string): Promise<unknown> {
    const { success, signature } = JSON.parse(output);
    expect(success).toBe(true);
    const ask = `${sandbox.url}/api/v1/transactions/${signature}?wait=landed&timeout=30s`;
    const response = await fetch(ask, { headers: { "api-x-token": sandbox.key } });
    return await response.json();
  }

  it("lands the sandbox's example as pasted", { timeout: 600_000 }, async () => {
    const { url, key, lines } = sandbox;
    const [, rpcUrl = ""] = /cluster RPC +(\S+)/.exec(lines.join("\n")) ?? [];
    const exampleUrl = rpcUrl + EXAMPLE_PATH;
    const output = await runRust(await programOf({ url, key, exampleUrl }));
    expect(await endOf(output)).toMatchObject({ state: "landed" });
  });

  it("lands the transaction in the reader's own file, as pasted", {
    timeout: 600_000,
  }, async () => {
    const { url, key } = sandbox;
    const program = await programOf({ url, key, exampleUrl: null });
    const output = await runRust(program, { "transaction.bin": sandbox.transaction() });
    expect(await endOf(output)).toMatchObject({ state: "landed" });
  });

  it("prints the rejection of a wrong key", { timeout: 600_000 }, async () => {
    const { url } = sandbox;
    const program = await programOf({ url, key: "td_sandbox_wrong", exampleUrl: null });
    const output = await runRust(program, { "transaction.bin": sandbox.transaction() });
    expect(JSON.parse(output)).toMatchObject({ success: false, reason: "unauthorized" });
  });
});
