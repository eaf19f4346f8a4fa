/** The example programs of the clients at an edge with the native engine. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeKey } from "../../src/core/encoding.ts";
import { loadNative } from "../../src/native/load.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import {
  buildRustProgram,
  buildTypescriptProgram,
  COMPILE_MS,
  hasCargo,
  type Program,
  run,
  writeKeypair,
} from "../support/client-program.ts";
import { ENGINE, type Flow, startFlow } from "../support/flow.ts";
import { until } from "../support/wait.ts";

// Compiling them takes minutes once, so only the suites of the native engine do.
const isPossible = ENGINE === "native" && hasCargo && loadNative().kind === "loaded";
const folder = mkdtempSync(join(tmpdir(), "touchdown-clients-"));
const known = freshIdentity();

describe.skipIf(!isPossible)("at an edge", () => {
  let flow: Flow;
  const programs = new Map<string, Program>();
  let variables: Record<string, string> = {};
  beforeAll(async () => {
    programs.set("rust", buildRustProgram());
    programs.set("typescript", buildTypescriptProgram());
    const publicKey = `public_key = "${encodeKey(known.publicKey)}"`;
    flow = await startFlow({
      leaderCount: 2,
      keys: `\n[[keys]]\n${publicKey}\naccount = "acme"\nplan = "Wide"\n`,
      edge: {
        http: { threads: 1 },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0" },
        landing: { resends_per_second: 0 },
      },
    });
    variables = { EDGE: flow.sandbox.edge.quicAddress ?? "no address" };
  }, COMPILE_MS);
  afterAll(async () => {
    await flow?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function programOf(client: string): Program {
    const program = programs.get(client);
    if (program === undefined) throw new Error(`no program of ${client}`);
    return program;
  }

  function transactionFile(name: string): { readonly file: string; readonly bytes: Uint8Array } {
    const { bytes } = flow.tipped();
    const file = join(folder, name);
    writeFileSync(file, bytes);
    return { file, bytes };
  }

  const CLIENTS = ["rust", "typescript"];

  it.each(CLIENTS)("%s sends over solana-tpu with a registered keypair", async (client) => {
    const KEYPAIR = writeKeypair(join(folder, "known.json"), known);
    const sent = [transactionFile("one"), transactionFile("two")];
    const args = sent.map(({ file }) => file);
    const { code, out, err } = await run(programOf(client), args, {
      ...variables,
      KEYPAIR,
      ALPN: "solana-tpu",
    });
    expect(err).toBe("");
    expect(out).toBe(args.map((file) => `${file}: sent\n`).join(""));
    expect(code).toBe(0);
    await until("leaders have received both", () =>
      sent.every(({ bytes }) => flow.deliveriesOf(bytes) > 0),
    );
  });

  it.each(CLIENTS)("%s ends with the reason without a registered keypair", async (client) => {
    const KEYPAIR = writeKeypair(join(folder, "unknown.json"), freshIdentity());
    const { file, bytes } = transactionFile("three");
    const ran = await run(programOf(client), [file], { ...variables, KEYPAIR, ALPN: "solana-tpu" });
    expect(ran.err).toContain("unauthorized");
    expect(ran.code).toBe(1);
    expect(flow.deliveriesOf(bytes)).toBe(0);
  });
});
