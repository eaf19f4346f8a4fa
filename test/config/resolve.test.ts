import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { type Problem, resolveConfig, resolveControl } from "../../src/config/resolve.ts";
import { isReadBy, KEY_PATHS } from "../../src/config/table.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const MINIMAL = { tip: { accounts: [TIP] }, accounts: { keys_file: "keys.toml" } };

type File = Readonly<Record<string, unknown>>;
type Environment = Readonly<Record<string, string>>;

function config(file: File, environment: Environment = {}): Config {
  const resolved = resolveConfig({ file, directory: "/etc/td", environment });
  if (resolved.kind === "problems") throw new Error(JSON.stringify(resolved.problems));
  return resolved.config;
}

function problems(file: File | null, environment: Environment = {}): readonly Problem[] {
  const resolved = resolveConfig({ file, directory: "/etc/td", environment });
  return resolved.kind === "problems" ? resolved.problems : [];
}

const keys = (list: readonly Problem[]): readonly string[] => list.map(({ key }) => key);

describe("edge configuration", () => {
  it("requires a tip account and a source of keys, and has defaults for the rest", () => {
    expect(config(MINIMAL)).toMatchObject({
      region: "local",
      http: { listen: { host: "127.0.0.1", port: 8080 }, drainGraceMs: 75_000 },
      quic: {
        listen: null,
        connections: 10_000,
        connectionsPerAddress: null,
        connectionsPerAccount: 1_000,
      },
      identity: { keypair: null },
      accounts: { keysFile: "/etc/td/keys.toml", databaseUrl: null },
      decode: { inline: "auto", workers: null, verify: true },
      send: { engine: "auto", leaders: 2 },
    });
    expect(keys(problems({}))).toEqual(["tip.accounts", "accounts"]);
  });

  it("is deeply frozen", () => {
    const edgeConfig = config(MINIMAL);
    expect(Object.isFrozen(edgeConfig)).toBe(true);
    expect(Object.isFrozen(edgeConfig.http.listen)).toBe(true);
    expect(Object.isFrozen(edgeConfig.tip.accounts)).toBe(true);
  });

  it("shows every key that an edge reads", () => {
    const resolved = resolveConfig({ file: MINIMAL, directory: "/etc/td", environment: {} });
    expect(resolved.kind === "ok" && [...resolved.shown.keys()].sort()).toEqual(
      KEY_PATHS.filter((path) => isReadBy("edge", path)).sort(),
    );
  });
});

describe("problems", () => {
  it("are reported together, each with its key", () => {
    const file = {
      regoin: "x",
      http: { listen: 8080, drain_grace: "5", nonsense: true },
      admin: "here",
      tip: { accounts: [], lamports_min: 0 },
      accounts: { keys_file: "a", database_url: "postgres://db/x" },
      send: { leaders: 17, engine: "fast" },
      extra: { table: { deep: 1 } },
    };
    expect([...keys(problems(file, { TOUCHDOWN_NOPE: "1" }))].sort()).toEqual(
      [
        "regoin",
        "http.listen",
        "http.drain_grace",
        "http.nonsense",
        "admin",
        "tip.accounts",
        "tip.lamports_min",
        "accounts",
        "send.leaders",
        "send.engine",
        "extra",
        "TOUCHDOWN_NOPE",
      ].sort(),
    );
  });

  it("suggest the closest known key", () => {
    const [first] = problems({ ...MINIMAL, http: { listne: "127.0.0.1:1" } });
    expect(first?.message).toBe("unknown key; did you mean http.listen?");
    const [section] = problems({ ...MINIMAL, clutser: { rpc_url: "http://a" } });
    expect(section?.message).toBe("unknown key; did you mean cluster?");
    const [other] = problems({ ...MINIMAL, http: { wholly_different_thing: 1 } });
    expect(other?.message).toBe("unknown key");
  });

  it("name an unknown subsection by its full path", () => {
    expect(keys(problems({ ...MINIMAL, http: { tcp: { cert: "x" } } }))).toEqual(["http.tcp"]);
  });

  it("name a key, and a value, of a table in a section by the full path", () => {
    const [unknown] = problems({ ...MINIMAL, http: { tls: { certificat: "x" } } });
    expect(unknown).toEqual({
      key: "http.tls.certificat",
      message: "unknown key; did you mean http.tls.certificate?",
    });
    const [flat] = problems({ ...MINIMAL, http: { tls: "cert.pem" } });
    expect(flat).toEqual({ key: "http.tls", message: "must be a table, written [http.tls]" });
  });

  it("name the other one of a certificate and its key, from the environment too", () => {
    const half = { ...MINIMAL, http: { tls: { certificate: "x" } } };
    const [key] = problems(half);
    const message = "must be given, because http.tls.certificate is";
    expect(key).toEqual({ key: "http.tls.key", message });
    expect(problems(half, { TOUCHDOWN_HTTP_TLS_KEY: "y" })).toEqual([]);
    expect(keys(problems(MINIMAL, { TOUCHDOWN_HTTP_TLS_KEY: "y" }))).toEqual([
      "http.tls.certificate",
    ]);
  });

  it("name what a certificate for QUIC clients alone needs", () => {
    const quic = { listen: "0.0.0.0:8009", tls: { certificate: "x", key: "y" } };
    expect(problems({ ...MINIMAL, quic })).toEqual([]);
    expect(keys(problems({ ...MINIMAL, quic: { tls: quic.tls } }))).toEqual(["quic.listen"]);
    const other = { listen: quic.listen, tls: { certificate: "x" } };
    expect(keys(problems({ ...MINIMAL, quic: other }))).toEqual(["quic.tls.key"]);
    const half = { listen: quic.listen, tls: { key: "y" } };
    const message = "must be given, because quic.tls.key is";
    expect(problems({ ...MINIMAL, quic: half })).toEqual([
      { key: "quic.tls.certificate", message },
    ]);
  });

  it("name a store for shared limits beside a keys file, from the environment too", () => {
    const redis_url = "redis://127.0.0.1:6379";
    const message = "has no effect with accounts.keys_file, it needs accounts.database_url";
    const problem = { key: "limits.redis_url", message };
    expect(problems({ ...MINIMAL, limits: { redis_url } })).toEqual([problem]);
    expect(problems(MINIMAL, { TOUCHDOWN_LIMITS_REDIS_URL: redis_url })).toEqual([problem]);
    const accounts = { database_url: "postgres://u:p@h/d" };
    expect(problems({ ...MINIMAL, accounts, limits: { redis_url } })).toEqual([]);
  });

  it("include an array or a date in place of a table", () => {
    expect(keys(problems({ ...MINIMAL, http: [] }))).toEqual(["http"]);
    expect(keys(problems({ ...MINIMAL, http: new Date(0) }))).toEqual(["http"]);
  });

  it("include an address that http and admin share, except with port 0", () => {
    const listen = (port: number): File => ({
      ...MINIMAL,
      http: { listen: `127.0.0.1:${port}` },
      admin: { listen: `127.0.0.1:${port}` },
    });
    expect(keys(problems(listen(7000)))).toEqual(["admin.listen"]);
    expect(problems(listen(0))).toEqual([]);
    const apart = { http: { listen: "127.0.0.1:7000" }, admin: { listen: "127.0.0.2:7000" } };
    expect(problems({ ...MINIMAL, ...apart })).toEqual([]);
    const next = { http: { listen: "127.0.0.1:7000" }, admin: { listen: "127.0.0.1:7001" } };
    expect(problems({ ...MINIMAL, ...next })).toEqual([]);
  });

  it("include no missing keys if the file could not be read", () => {
    expect(keys(problems(null, { TOUCHDOWN_X: "" }))).toEqual(["TOUCHDOWN_X"]);
  });

  it("never quote the database password", () => {
    const file = { ...MINIMAL, accounts: { database_url: "mysql://u:s3cret@h" } };
    expect(JSON.stringify(problems(file))).not.toContain("s3cret");
  });
});

describe("environment variables", () => {
  it("override keys of each type", () => {
    const overridden = config(MINIMAL, {
      TOUCHDOWN_REGION: "fra",
      TOUCHDOWN_HTTP_LISTEN: "[::1]:0",
      TOUCHDOWN_HTTP_DRAIN_GRACE: "250ms",
      TOUCHDOWN_SEND_LEADERS: "3",
      TOUCHDOWN_DECODE_VERIFY: "false",
      TOUCHDOWN_DECODE_WORKERS: "2",
      TOUCHDOWN_TIP_ACCOUNTS: `${TIP},DbVZyfqQQ41zmebmNCJMT5UFSLNtjcwy55BBg3PofaR`,
      TOUCHDOWN_IDENTITY_KEYPAIR: "id.json",
      PATH: "/bin",
    });
    expect(overridden).toMatchObject({
      region: "fra",
      http: { listen: { host: "::1", port: 0 }, drainGraceMs: 250 },
      send: { leaders: 3 },
      decode: { verify: false, workers: 2 },
      tip: { accounts: [TIP, "DbVZyfqQQ41zmebmNCJMT5UFSLNtjcwy55BBg3PofaR"] },
      identity: { keypair: "/etc/td/id.json" },
    });
  });

  it("exist for every key", () => {
    const names = KEY_PATHS.map((path) => `TOUCHDOWN_${path.replaceAll(".", "_").toUpperCase()}`);
    expect(new Set(names).size).toBe(KEY_PATHS.length);
    const unknown = problems(MINIMAL, Object.fromEntries(names.map((name) => [name, "\n"]))).filter(
      ({ message }) => message.startsWith("unknown"),
    );
    expect(unknown).toEqual([]);
  });

  it("are rejected if they are unknown, empty or of the wrong type", () => {
    const environment = {
      TOUCHDOWN_HTTP_LISTN: "127.0.0.1:1",
      TOUCHDOWN_REGION: "",
      TOUCHDOWN_SEND_LEADERS: "two",
    };
    expect(problems(MINIMAL, environment)).toEqual([
      {
        key: "TOUCHDOWN_HTTP_LISTN",
        message: "unknown environment variable; did you mean TOUCHDOWN_HTTP_LISTEN?",
      },
      {
        key: "TOUCHDOWN_REGION (region)",
        message: 'must be 1 to 32 letters, digits, "-", "_" or ".", is ""',
      },
      {
        key: "TOUCHDOWN_SEND_LEADERS (send.leaders)",
        message: 'must be an integer from 1 to 16, is "two"',
      },
    ]);
  });

  it("set by Kubernetes are rejected with the option that disables them", () => {
    // Kubernetes sets these in each container for a Service called touchdown-edge.
    const suffixes = [
      "PORT",
      "PORT_80_TCP",
      "PORT_80_TCP_ADDR",
      "SERVICE_HOST",
      "SERVICE_PORT_HTTP",
    ];
    const environment = Object.fromEntries(suffixes.map((end) => [`TOUCHDOWN_EDGE_${end}`, "x"]));
    const found = problems(MINIMAL, environment);
    expect(keys(found)).toEqual(suffixes.map((end) => `TOUCHDOWN_EDGE_${end}`));
    for (const { message } of found) expect(message).toContain("enableServiceLinks: false");
    const [other] = problems(MINIMAL, { TOUCHDOWN_PORTS: "x" });
    expect(other?.message).toBe("unknown environment variable");
  });

  it("can supply keys that the file must otherwise contain", () => {
    const environment = { TOUCHDOWN_TIP_ACCOUNTS: TIP, TOUCHDOWN_ACCOUNTS_KEYS_FILE: "k" };
    expect(config({}, environment).tip.accounts).toEqual([TIP]);
  });

  it("do not hide an error in the file", () => {
    const file = { ...MINIMAL, region: 1 };
    expect(keys(problems(file, { TOUCHDOWN_REGION: "ok" }))).toEqual(["region"]);
  });
});

describe("control process configuration", () => {
  const CONTROL = {
    control: {
      public_url: "https://dash.example",
      oidc_issuer: "https://login.example/realm",
      oidc_client_id: "touchdown",
      oidc_client_secret: "s3cret",
      vault_file: "vault.json",
    },
    accounts: { database_url: "postgres://u:s3cret@db/x" },
  };
  const resolved = (over: object = {}) =>
    resolveControl({
      file: { ...CONTROL, control: { ...CONTROL.control, ...over } },
      directory: "/etc/td",
      environment: {},
    });

  it("requires no key that only an edge reads", () => {
    const found = resolved();
    expect(found.kind === "ok" && found.config).toMatchObject({
      publicUrl: "https://dash.example",
      vaultFile: "/etc/td/vault.json",
      sessionIdleMs: 1_800_000,
      databaseUrl: "postgres://u:s3cret@db/x",
    });
  });

  it("reports its missing keys, which an edge does not require", () => {
    const found = resolveControl({ file: {}, directory: "/", environment: {} });
    expect(found.kind === "problems" && keys(found.problems)).toEqual([
      "control.public_url",
      "control.oidc_issuer",
      "control.oidc_client_id",
      "control.vault_file",
      "accounts.database_url",
    ]);
    expect(keys(problems({ ...MINIMAL, control: {} }))).toEqual([]);
  });

  it("shows only its own keys, and no secret", () => {
    const found = resolved();
    const shown = found.kind === "ok" ? found.shown : new Map<string, unknown>();
    expect([...shown.keys()]).not.toContain("tip.accounts");
    expect(shown.get("control.oidc_client_secret")).toBe("hidden");
    expect(JSON.stringify([...shown])).not.toContain("s3cret");
  });

  it("rejects an idle time above the session's maximum, and plain HTTP to a remote host", () => {
    for (const [over, key] of [
      [{ session_idle: "13h" }, "control.session_idle"],
      [{ oidc_issuer: "http://login.example" }, "control.oidc_issuer"],
      [{ public_url: "http://dash.example" }, "control.public_url"],
      [{ public_url: "https://dash.example/path" }, "control.public_url"],
    ] as const) {
      const found = resolved(over);
      expect(found.kind === "problems" && keys(found.problems)).toEqual([key]);
    }
    // Equal lengths are valid.
    expect(resolved({ session_idle: "12h", session_max: "12h" }).kind).toBe("ok");
  });
});
