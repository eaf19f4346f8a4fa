/**
 * `touchdown/1` with the clients of `clients/` and `examples/quic.py`, at an edge with a
 * certificate of its own. The Python program needs aioquic in the Python that the variable
 * AIOQUIC_PYTHON names.
 */

import { X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Client, type ClientEvent, connect } from "../../clients/typescript/src/client.ts";
import { clientKeyOf } from "../../src/accounts/keys/client-key.ts";
import { encodeKey } from "../../src/core/encoding.ts";
import { loadNative } from "../../src/native/load.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { createAuthority } from "../support/authority.ts";
import {
  buildRustProgram,
  buildTypescriptProgram,
  COMPILE_MS,
  hasCargo,
  type Program,
  run,
  rustProgramOf,
  typescriptProgramOf,
  writeKeypair,
} from "../support/client-program.ts";
import { ENGINE, keyToml, SILENT } from "../support/flow.ts";
import { ROOT } from "../support/source-tree.ts";
import { until } from "../support/wait.ts";

const isPossible = ENGINE === "native" && hasCargo && loadNative().kind === "loaded";
const python = process.env["AIOQUIC_PYTHON"];
const folder = mkdtempSync(join(tmpdir(), "touchdown-clients-"));
const KEY = "clients-test-key-of-acme";
const REVOKED_KEY = "clients-test-key-revoked";
/** The page's module is JavaScript without declarations, so its path is no literal here. */
const page: Readonly<Record<"quicRust" | "quicTypescript", (filling: object) => string>> =
  await import(join(ROOT, "src/control/pages/lib/snippets-quic.js"));
/** What the programs over QUIC have no use for. */
const FILLING = { url: "", tipAccount: "", tipLamports: 0, rpcUrl: null, exampleUrl: null };
const PLAN = "[plans.Wide]\nrate_per_second = 1_000\nburst = 500\n";

it("the TypeScript client refuses an empty list of authorities", () => {
  const options = { address: "127.0.0.1:9", credential: { apiKey: KEY }, trust: [] };
  expect(() => connect(options)).toThrow(/^trust names no authority/);
});

it.each([Number.POSITIVE_INFINITY, Number.NaN, -1, 2 ** 32])(
  "the TypeScript client refuses %d as a number of an option",
  (number) => {
    const options = { address: "127.0.0.1:9", credential: { apiKey: KEY }, reconnectsMax: number };
    expect(() => connect(options)).toThrow(`reconnectsMax is ${number}, a number from 0 to`);
  },
);

describe.skipIf(!isPossible)("touchdown/1 at an edge", () => {
  const authority = createAuthority();
  const known = freshIdentity();
  const keysFile = join(folder, "keys.toml");
  const files = {
    certificate: join(folder, "cert.pem"),
    key: join(folder, "key.pem"),
    authority: join(folder, "authority.pem"),
    authorityDer: join(folder, "authority.der"),
    keypair: join(folder, "known.json"),
  };
  const authorityDer = new X509Certificate(authority.certificate).raw;
  const programs = new Map<string, Program>();
  const clients: Client[] = [];
  const keysText = [
    PLAN,
    `${keyToml(KEY, "acme", "Wide")}client_key = "${encodeKey(clientKeyOf(KEY))}"\n`,
    `[[keys]]\npublic_key = "${encodeKey(known.publicKey)}"\naccount = "acme"\nplan = "Wide"\n`,
    keyToml(REVOKED_KEY, "revoked", "Wide"),
  ].join("\n");
  let sandbox: Sandbox;

  const start = (): Promise<Sandbox> =>
    startSandbox({
      port: 0,
      log: SILENT,
      edge: {
        http: { threads: 1, tls: { certificate: files.certificate, key: files.key } },
        send: { engine: "native" },
        quic: { listen: "127.0.0.1:0", drain_to: "127.0.0.1:9" },
        accounts: { keys_file: keysFile },
      },
    });

  beforeAll(async () => {
    programs.set("rust", buildRustProgram());
    programs.set("typescript", buildTypescriptProgram());
    if (python !== undefined) programs.set("python", [python, "examples/quic.py"]);
    writeFileSync(files.certificate, authority.server.certificate);
    writeFileSync(files.key, authority.server.key);
    writeFileSync(files.authority, authority.certificate);
    writeFileSync(files.authorityDer, authorityDer);
    writeKeypair(files.keypair, known);
    writeFileSync(keysFile, keysText);
    sandbox = await start();
  }, COMPILE_MS);
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });
  afterAll(async () => {
    await sandbox?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const address = (of = sandbox): string => of.edge.quicAddress ?? "no address";

  function connected(
    apiKey: string,
    options: { readonly receipts?: boolean; readonly address?: string } = {},
  ) {
    const events: ClientEvent[] = [];
    const client = connect({
      address: address(),
      credential: { apiKey },
      trust: [authorityDer],
      onEvent: (event) => events.push(event),
      reconnectsMax: 2,
      backoffMinMs: 1,
      ...options,
    });
    clients.push(client);
    const kinds = (): readonly string[] => events.map(({ kind }) => kind);
    return { client, events, kinds };
  }

  function transactionFile(name: string, bytes: Uint8Array = sandbox.transaction()): string {
    const file = join(folder, name);
    writeFileSync(file, bytes);
    return file;
  }

  describe.each(["rust", "typescript", "python"])("the program in %s", (language) => {
    const isMissing = language === "python" && python === undefined;
    const ran = async (args: readonly string[], variables: Readonly<Record<string, string>>) => {
      const program = programs.get(language);
      if (program === undefined) throw new Error(`no program in ${language}`);
      const AUTHORITY = language === "python" ? files.authority : files.authorityDer;
      return await run(program, args, { EDGE: address(), AUTHORITY, ...variables });
    };

    it.skipIf(isMissing)("gets a verdict with an API key, and one for a refusal", async () => {
      const good = transactionFile(`good-${language}`);
      const bad = transactionFile(`bad-${language}`, Buffer.from("no transaction"));
      const { code, out, err } = await ran([good, bad], { KEY });
      const [first, second] = out.split("\n");
      expect(first, err).toMatch(/: accepted after \d+ us$/i);
      expect(second).toMatch(/refused|undecodable/i);
      expect(code).toBe(0);
    });

    it.skipIf(isMissing)("gets a verdict with a registered keypair", async () => {
      const file = transactionFile(`keypair-${language}`);
      const { out, err } = await ran([file], { KEYPAIR: files.keypair });
      expect(out, err).toMatch(/: accepted after \d+ us$/im);
    });

    // The Python program has no derived certificates.
    it.skipIf(language === "python")(
      "gets a verdict with a certificate of its API key",
      async () => {
        const file = transactionFile(`derived-${language}`);
        const { out, err } = await ran([file], { DERIVE_FROM: KEY });
        expect(out, err).toMatch(/: accepted after \d+ us$/im);
      },
    );

    it.skipIf(isMissing)("says why an unknown API key is refused", async () => {
      const { code, err } = await ran([], { KEY: "an-unknown-key-of-this-test" });
      expect(err).toMatch(/unauthorized|0x101/);
      expect(code).not.toBe(0);
    });
  });

  it.skipIf(python === undefined)("the sandbox prints a command that works as pasted", async () => {
    const pasted = join(folder, "pasted-command");
    mkdirSync(pasted);
    symlinkSync(join(ROOT, "examples"), join(pasted, "examples"));
    const http = { threads: 1 };
    const own = await startSandbox({ port: 0, log: SILENT, edge: { http } });
    try {
      const first = own.lines.findIndex((line) => /^curl .* -o transaction\.bin$/.test(line));
      const command = own.lines.slice(first, first + 3).join("\n");
      const PATH = `${dirname(python ?? "")}:${process.env["PATH"]}`;
      const { code, out, err } = await run(["bash", "-c", command], [], { PATH }, pasted);
      expect({ code, out }, err).toMatchObject({ code: 0 });
      expect(out).toMatch(/^transaction\.bin: accepted after \d+ us$/m);
    } finally {
      await own.stop();
    }
  });

  it.each([
    ["Rust", page.quicRust, rustProgramOf, /^Accepted after \d+ us$/m],
    ["TypeScript", page.quicTypescript, typescriptProgramOf, /^[1-9A-HJ-NP-Za-km-z]{86,88}$/m],
  ] as const)(
    "the page Connect has a program in %s that works",
    async (...[name, text, of, says]) => {
      const pasted = join(folder, `pasted-${name}`);
      const source = text({ ...FILLING, quic: address(), key: KEY });
      const program = of(source, pasted);
      writeFileSync(join(pasted, "transaction.bin"), sandbox.transaction());
      const { code, out, err } = await run(program, [], { SSL_CERT_FILE: files.authority }, pasted);
      expect(out, err).toMatch(says);
      expect(code).toBe(0);
    },
  );

  it("the TypeScript client learns limits and tips before it is ready", async () => {
    const { client, events } = connected(KEY);
    await client.ready();
    await until("the tips", () => events.some(({ kind }) => kind === "tips"));
    expect(events.find(({ kind }) => kind === "limits")).toMatchObject({
      ratePerSecond: 1_000,
      burst: 500,
    });
    const tips = events.find((event) => event.kind === "tips");
    expect(tips).toMatchObject({ lamportsMin: 1_000_000n });
  });

  it("the TypeScript client has typed verdicts and the account's receipts", async () => {
    const { client, events } = connected(KEY, { receipts: true });
    const landed = await client.submit(sandbox.transaction(), { whenLanded: true });
    if (landed.outcome !== "landed") throw new Error(`it ended as ${landed.outcome}`);
    expect(landed.slot).toBeGreaterThan(0);
    expect(landed.hasExecutionFailed).toBe(false);
    const isOwn = (event: ClientEvent) =>
      event.kind === "receipt" && event.verdict.signature === landed.signature;
    await until("its receipt", () => events.some(isOwn));
    const transaction = sandbox.transaction();
    transaction[40] = (transaction[40] ?? 0) ^ 1;
    const refused = await client.submit(transaction);
    expect(refused).toMatchObject({
      outcome: "refused",
      reason: "signature_invalid",
      isRetryable: false,
    });
  });

  it("the TypeScript client submits a hundred at the same time", async () => {
    const { client } = connected(KEY);
    const verdicts = await Promise.all(
      Array.from({ length: 100 }, () => client.submit(sandbox.transaction())),
    );
    expect(verdicts.every(({ outcome }) => outcome === "accepted")).toBe(true);
    expect(new Set(verdicts.map(({ signature }) => signature)).size).toBe(100);
  });

  it("the TypeScript client's caller may reuse its array at once", async () => {
    const { client } = connected(KEY);
    await client.ready();
    const array = Buffer.alloc(4096);
    const verdicts = await Promise.all(
      Array.from({ length: 50 }, () => {
        const transaction = sandbox.transaction();
        array.set(transaction);
        return client.submit(array.subarray(0, transaction.length));
      }),
    );
    expect(verdicts.every(({ outcome }) => outcome === "accepted")).toBe(true);
    expect(new Set(verdicts.map(({ signature }) => signature)).size).toBe(50);
  });

  it("the TypeScript client rejects with the kind of the error", async () => {
    const { client, events } = connected("another-unknown-key-of-this-test");
    await expect(client.ready()).rejects.toMatchObject({
      kind: "connection_refused",
      reason: "unauthorized",
    });
    await until("the last event", () => events.some(({ kind }) => kind === "failed"));
    expect(events.at(-1)).toMatchObject({ kind: "failed", error: { reason: "unauthorized" } });
    await expect(client.submit(new Uint8Array(4097))).rejects.toMatchObject({ kind: "size" });
    client.close();
    await expect(client.submit(sandbox.transaction())).rejects.toMatchObject({ kind: "closed" });
  });

  it("the TypeScript client ends when its key is revoked", async () => {
    writeFileSync(keysFile, keysText);
    await sandbox.edge.reloadKeys();
    const { client } = connected(REVOKED_KEY);
    await client.ready();
    writeFileSync(keysFile, keysText.replace(keyToml(REVOKED_KEY, "revoked", "Wide"), ""));
    await sandbox.edge.reloadKeys();
    const reasonOf = async (): Promise<string | null> =>
      client.ready().then(
        () => null,
        (error: { readonly reason: string }) => error.reason,
      );
    await expect.poll(reasonOf, { timeout: 10_000 }).toBe("unauthorized");
  });

  it("the TypeScript client stays where the named edge cannot be reached", async () => {
    const drained = await start();
    const { client, events } = connected(KEY, { address: address(drained) });
    await client.ready();
    drained.edge.drain();
    const draining = { kind: "draining", address: "127.0.0.1:9" };
    await until("the frame", () => events.some(({ kind }) => kind === "draining"));
    expect(events).toContainEqual(draining);
    const verdict = await client.submit(drained.transaction());
    expect(verdict.outcome).toBe("accepted");
    client.close();
    await drained.stop();
  });
});
