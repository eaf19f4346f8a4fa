import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockJournal } from "../../src/accounts/keys/journal-lock.ts";
import { run } from "../../src/cli/run.ts";
import { configFromValues } from "../../src/config/load.ts";
import { SetupError } from "../../src/core/errors.ts";
import { startEdge } from "../../src/edge/edge.ts";
import { preflight, requireRealtime } from "../../src/edge/preflight.ts";
import { native } from "../native/addon.ts";
import { createAuthority, type Issued } from "../support/authority.ts";
import { createFakeIo } from "../support/fake-io.ts";
import { SILENT } from "../support/flow.ts";
import { freePort } from "../support/ports.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const MAIN = join(import.meta.dirname, "../../dist/main.js");

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-preflight-"));
  writeFileSync(join(folder, "keys.toml"), "[plans.Main]\nrate_per_second = 10\nburst = 10\n");
  writeFileSync(join(folder, "empty.toml"), "");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Values = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

function valuesOf(more: Values): Values {
  const usual: Values = {
    http: { listen: "127.0.0.1:0" },
    admin: { listen: "127.0.0.1:0" },
    send: { engine: "portable", bind: "127.0.0.1:0" },
    accounts: { keys_file: "keys.toml" },
  };
  const sections = [...new Set([...Object.keys(usual), ...Object.keys(more)])];
  const merged = sections.map((section) => {
    // A key that is overridden by nothing is left out.
    const keys = Object.entries({ ...usual[section], ...more[section] });
    return [section, Object.fromEntries(keys.filter(([, value]) => value !== undefined))];
  });
  return { tip: { accounts: [TIP] }, ...Object.fromEntries(merged) };
}

const configOf = (more: Values) => configFromValues(valuesOf(more), folder, {});

function tomlOf(values: Values): string {
  return Object.entries(values)
    .map(([section, keys]) => {
      const lines = Object.entries(keys).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
      return `[${section}]\n${lines.join("\n")}\n`;
    })
    .join("");
}

/** What keeps an edge from starting, each with how the message begins and what it contains. */
const WRONG: readonly (readonly [string, Values, string, string])[] = [
  ["QUIC without its engine", { quic: { listen: "127.0.0.1:0" } }, "quic.listen", "native"],
  ["keys that are not there", { accounts: { keys_file: "none.toml" } }, "", "none.toml"],
  ["keys that are none", { accounts: { keys_file: "empty.toml" } }, "", "holds no plan"],
  ["an identity that is not there", { identity: { keypair: "id.json" } }, "identity.", "ENOENT"],
  ["an identity that is none", { identity: { keypair: "keys.toml" } }, "identity.", "keys.toml"],
  [
    "a listen host without an address",
    { http: { listen: "no-such-host.invalid:0" } },
    "http.listen",
    "name",
  ],
  ["an admin host of another machine", { admin: { listen: "192.0.2.1:0" } }, "admin.", "belong"],
  ["a source address of another machine", { send: { bind: "192.0.2.1:0" } }, "send.bind", "belong"],
  [
    "a TLS file of the database that is not there",
    {
      accounts: {
        ...{ keys_file: undefined, journal: "keys.journal" },
        database_url: "postgres://a@b/c?sslmode=verify-full&sslrootcert=/none/root.pem",
      },
    },
    "accounts.database_url",
    "/none/root.pem",
  ],
  ["one source address too many", { send: { bind: ["0.0.0.0:0", "127.0.0.1:0"] } }, "send.", "one"],
  ["ingress threads without their engine", { http: { threads: 1 } }, "http.threads", "portable"],
  ["polling without its engine", { host: { busy_poll: true } }, "host.busy_poll", "portable"],
  ["real-time priority for no thread", { host: { realtime: true } }, "host.realtime", "none"],
  [
    "a journal that is a folder",
    { accounts: { keys_file: undefined, database_url: "postgres://a@b/c", journal: "." } },
    "accounts.journal",
    "it is a folder, a file is needed",
  ],
  [
    "a journal in a folder that is a file",
    {
      accounts: { keys_file: undefined, database_url: "postgres://a@b/c", journal: "keys.toml/j" },
    },
    "accounts.journal",
    "cannot be written to",
  ],
];

describe("what keeps an edge from starting", () => {
  it("is nothing where all is in order, and then an edge starts", async () => {
    const { problems, inUse, warnings } = await preflight(configOf({}));
    expect({ problems, inUse }).toEqual({ problems: [], inUse: [] });
    const ofMachine = /limit of open files/;
    expect(warnings.filter((warning) => !ofMachine.test(warning))).toEqual([
      expect.stringContaining("portable engine is for development"),
    ]);
    const edge = await startEdge(configOf({}), { log: SILENT });
    await edge.stop();
  });

  it.each(WRONG)("is %s: `check` and `edge` exit with 1 for it", async (_, more, start, words) => {
    const values = valuesOf(more);
    const { problems } = await preflight(configFromValues(values, folder, {}));
    expect(problems).toHaveLength(1);
    const [problem = ""] = problems;
    expect(problem.startsWith(start) && problem.includes(words)).toBe(true);
    const file = join(folder, "touchdown.toml");
    writeFileSync(file, tomlOf(values));
    for (const command of ["check", "edge"]) {
      const io = createFakeIo();
      const code = await run([command, "--config", file], io);
      expect({ command, code }).toEqual({ command, code: 1 });
      expect(io.errLines.join("\n")).toContain(problem);
    }
  });

  it("is a certificate that cannot be used, or no thread that speaks TLS", async () => {
    const now = Date.now();
    const write = ({ certificate, key }: Issued) => {
      writeFileSync(join(folder, "cert.pem"), certificate);
      writeFileSync(join(folder, "key.pem"), key);
    };
    const tls = { certificate: "cert.pem", key: "key.pem" };
    const quic = { listen: "127.0.0.1:0", tls: { certificate: "quic.pem", key: "quic.key" } };
    const ofQuic = await preflight(configOf({ quic, send: { bind: undefined } }));
    expect(ofQuic.problems).toContainEqual(
      expect.stringMatching(/^quic\.tls\.certificate: .*cannot be read \(ENOENT\)/),
    );
    const problemsWith = async (engine: string) => {
      const more = { http: { tls }, send: { engine, bind: undefined } };
      return await preflight(configOf(more));
    };
    expect((await problemsWith("portable")).problems).toEqual([
      expect.stringMatching(/^http\.tls: .*native engine/),
      expect.stringMatching(/^http\.tls\.certificate: .*cannot be read \(ENOENT\)/),
    ]);
    const engine = native === null ? "portable" : "native";
    const ofFile = (problems: readonly string[]) => problems.filter((text) => /\.pem/.test(text));
    write(createAuthority().issue(now - 200_000, now - 100_000));
    expect(ofFile((await problemsWith(engine)).problems)).toEqual([
      expect.stringMatching(/the certificate expired on/),
    ]);
    write(createAuthority().issue(now - 864_000_000, now + 86_400_000));
    const { problems, warnings } = await problemsWith(engine);
    expect(ofFile(problems)).toEqual([]);
    expect(warnings).toContainEqual(expect.stringMatching(/in 0 days: renew it/));
  });

  it("is an HTTP library without a binary for this Node", async () => {
    const message = "uws-node24 does not load on Node 24.1.0 on linux-x64";
    const load = () => Promise.reject(new SetupError(message));
    expect((await preflight(configOf({}), load)).problems).toEqual([message]);
  });

  it("is all of it in one message", async () => {
    const more: Values = {
      quic: { listen: "127.0.0.1:0" },
      identity: { keypair: "id.json" },
      send: { bind: "192.0.2.1:0" },
    };
    expect((await preflight(configOf(more))).problems).toHaveLength(3);
  });

  it.each(["check", "edge"])("is fewer open files than an edge needs: %s", (command) => {
    const file = join(folder, "touchdown.toml");
    writeFileSync(file, tomlOf(valuesOf({})));
    const started = spawnSync(
      "sh",
      ["-c", 'ulimit -n 100; exec "$@"', "sh", process.execPath, MAIN, command, "--config", file],
      { encoding: "utf8" },
    );
    expect(started.status).toBe(1);
    expect(started.stderr).toContain("open files: this process may open 100, an edge needs 256");
  });
});

describe.skipIf(native === null)("addresses of QUIC", () => {
  const withNative = (more: Values) =>
    preflight(
      configOf({ ...more, send: { engine: "native", bind: "127.0.0.1:0", ...more["send"] } }),
    );

  it("keep an edge from starting where clients cannot be reached at one", async () => {
    const { problems, inUse } = await withNative({ quic: { listen: "192.0.2.1:0" } });
    expect(inUse).toEqual([]);
    expect(problems).toEqual([
      expect.stringMatching(/^quic\.listen: cannot listen on 192\.0\.2\.1:0: .*belong/),
    ]);
    const other = await withNative({ quic: { listen: "[2001:db8::1]:0" } });
    expect(other.problems).toEqual([
      expect.stringMatching(/^quic\.listen: cannot listen on \[2001/),
    ]);
  });

  it("may be in use by another process", async () => {
    const taken = createSocket("udp4");
    await new Promise<void>((resolve) => taken.bind(0, "127.0.0.1", resolve));
    const listen = `127.0.0.1:${taken.address().port}`;
    const { problems, inUse } = await withNative({ quic: { listen } });
    taken.close();
    expect(problems).toEqual([]);
    expect(inUse).toEqual([`quic.listen: cannot listen on ${listen}: the port is in use`]);
  });

  it("cannot share a port, unless one is of IPv4 and the other of IPv6", async () => {
    const port = await freePort();
    const at = `127.0.0.1:${port}`;
    const cannot = "send.bind has that port at this address too";
    expect(await withNative({ quic: { listen: at }, send: { bind: at } })).toMatchObject({
      problems: [`quic.listen: cannot listen on ${at}: ${cannot}`],
      inUse: [],
    });
    expect(await withNative({ send: { bind: [`0.0.0.0:${port}`, at] } })).toMatchObject({
      problems: [`send.bind: cannot send from ${at}: ${cannot}`],
      inUse: [],
    });
    const both = [`0.0.0.0:${port}`, `[::]:${port}`];
    expect(await withNative({ send: { bind: both } })).toMatchObject({ problems: [], inUse: [] });
  });
});

describe("real-time priority", () => {
  const limits = (value: string) => `Max realtime priority     ${value}                    0\n`;
  const status = (capabilities: string) => `Name:\tnode\nCapEff:\t${capabilities}\n`;

  it.each([
    ["a limit", limits("1"), status("0000000000000000")],
    ["no limit", limits("unlimited"), status("0000000000000000")],
    ["the capability", limits("0"), status("0000000000800000")],
    ["a system that states none", "", ""],
  ])("is allowed by %s", (_, limitsText, statusText) => {
    expect(() => requireRealtime(limitsText, statusText)).not.toThrow();
  });

  it("is refused by a limit of 0 and every other capability", () => {
    const refused = () => requireRealtime(limits("0"), status("ffffffffff7fffff"));
    expect(refused).toThrow("host.realtime: the system denies");
  });
});

describe("what another process uses", () => {
  let taken: Server | null = null;
  afterEach(() => void taken?.close());

  async function takePort(): Promise<number> {
    const server = createServer();
    taken = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  it("is a port, which is no error of the configuration", async () => {
    const listen = `127.0.0.1:${await takePort()}`;
    const { problems, inUse } = await preflight(configOf({ http: { listen } }));
    expect(problems).toEqual([]);
    expect(inUse).toEqual([`http.listen: cannot listen on ${listen}: the port is in use`]);
  });

  it("is not a port that the other listener has: no edge could have both", async () => {
    const port = await takePort();
    await new Promise((resolve) => taken?.close(resolve));
    const more = { http: { listen: `0.0.0.0:${port}` }, admin: { listen: `127.0.0.1:${port}` } };
    const { problems, inUse } = await preflight(configOf(more));
    expect({ problems, inUse }).toEqual({
      problems: [
        `admin.listen: cannot listen on 127.0.0.1:${port}: http.listen has that port at this ` +
          "address too",
      ],
      inUse: [],
    });
  });

  it("is the journal, and looking leaves nothing behind", async () => {
    const path = join(folder, "keys.journal");
    const accounts = { keys_file: undefined, database_url: "postgres://a@b/c", journal: path };
    expect((await preflight(configOf({ accounts }))).inUse).toEqual([]);
    const lock = lockJournal(path);
    const { problems, inUse } = await preflight(configOf({ accounts }));
    lock.release();
    expect(problems).toEqual([]);
    expect(inUse).toEqual([`accounts.journal: ${path} is in use by process ${process.pid}`]);
  });
});
