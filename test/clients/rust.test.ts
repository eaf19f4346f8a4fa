/** The Rust client's example program at an edge with the native engine. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeKey } from "../../src/core/encoding.ts";
import { loadNative } from "../../src/native/load.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { buildClientProgram, hasCargo, run, writeKeypair } from "../support/client-program.ts";
import { type Flow, startFlow } from "../support/flow.ts";
import { until } from "../support/wait.ts";

const isPossible = hasCargo && loadNative().kind === "loaded";
const folder = mkdtempSync(join(tmpdir(), "touchdown-rust-client-"));
const known = freshIdentity();

describe.skipIf(!isPossible)("the Rust client at an edge", () => {
  let flow: Flow;
  let program = "";
  let variables: Record<string, string> = {};
  beforeAll(async () => {
    program = buildClientProgram();
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
  });
  afterAll(async () => {
    await flow?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function transactionFile(name: string): { readonly file: string; readonly bytes: Uint8Array } {
    const { bytes } = flow.tipped();
    const file = join(folder, name);
    writeFileSync(file, bytes);
    return { file, bytes };
  }

  it("sends over solana-tpu with a registered keypair, and leaders receive it", async () => {
    const KEYPAIR = writeKeypair(join(folder, "known.json"), known);
    const sent = [transactionFile("one"), transactionFile("two")];
    const args = sent.map(({ file }) => file);
    const { code, out, err } = await run(program, args, {
      ...variables,
      KEYPAIR,
      ALPN: "solana-tpu",
    });
    expect(err).toBe("");
    expect(out).toBe(args.map((file) => `${file}: sent\n`).join(""));
    expect(code).toBe(0);
    await until("delivery", () => sent.every(({ bytes }) => flow.deliveriesOf(bytes) > 0));
  });

  it("ends with the reason where the keypair is not registered", async () => {
    const KEYPAIR = writeKeypair(join(folder, "unknown.json"), freshIdentity());
    const { file, bytes } = transactionFile("three");
    const ran = await run(program, [file], { ...variables, KEYPAIR, ALPN: "solana-tpu" });
    expect(ran.err).toContain("unauthorized");
    expect(ran.code).toBe(1);
    expect(flow.deliveriesOf(bytes)).toBe(0);
  });
});
