import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { usersOf } from "../../src/cli/check.ts";
import { run } from "../../src/cli/run.ts";
import { systemClock } from "../../src/core/clock.ts";
import { listening } from "../../src/sandbox/ports.ts";
import { MAIN } from "../support/edge-process.ts";
import { createFakeIo } from "../support/fake-io.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-check-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

const KEYS = 'keys_file = "keys.toml"';

/** A keys file with which an edge can start. */
function writeKeys(): void {
  const plan = "[plans.Main]\nrate_per_second = 10\nburst = 10\n";
  writeFileSync(join(directory, "keys.toml"), plan);
}

/** Any free ports where none are given, so that a running service is not in the way. */
const FREE = '[http]\nlisten = "127.0.0.1:0"\n[admin]\nlisten = "127.0.0.1:0"\n';

// Without the native engine, or with few open files, an edge warns: these lines depend on the
// machine, as the one of the Node version does.
function isWarning(line: string): boolean {
  return line.includes(" on this machine would warn: ") || line.includes("no security fixes");
}

async function check(text: string) {
  const file = join(directory, "touchdown.toml");
  const isEdge = !text.includes("[http]") && !text.includes("[control]");
  writeFileSync(file, isEdge ? text + FREE : text);
  const io = createFakeIo();
  const code = await run(["check", "--config", file], io);
  const err = io.errLines.filter((line) => !isWarning(line)).join("\n");
  return { code, out: io.outLines.join("\n"), err, warnings: io.errLines.filter(isWarning) };
}

describe("check", () => {
  it("prints the effective configuration, exit code 0", async () => {
    writeKeys();
    const { code, out, err } = await check(
      `[tip]\naccounts = ["${TIP}"]\n[accounts]\nkeys_file = "keys.toml"\n`,
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain('drain_grace = "75s"');
    expect(out).toContain(TIP);
    expect(out).toContain(JSON.stringify(join(directory, "keys.toml")));
  });

  it("prints every problem in one run, exit code 1, and nothing to standard output", async () => {
    const { code, out, err } = await check('region = 1\n[send]\nleaders = "two"\nx = 1\n');
    expect({ code, out }).toEqual({ code: 1, out: "" });
    for (const key of ["region", "send.leaders", "send.x", "tip.accounts", "accounts"]) {
      expect(err).toContain(`  ${key}: `);
    }
  });

  it("reads a pipe, which can be read only once", async () => {
    const pipe = join(directory, "pipe");
    writeKeys();
    execFileSync("mkfifo", [pipe]);
    const text = `[tip]\naccounts = ["${TIP}"]\n[accounts]\nkeys_file = "keys.toml"\n${FREE}`;
    // A second read finds it empty.
    const writer = spawn("sh", ["-c", `printf %s "$1" > "$2"; : > "$2"`, "sh", text, pipe]);
    const io = createFakeIo();
    const code = await run(["check", "--config", pipe], io);
    writer.kill("SIGKILL");
    const err = io.errLines.filter((line) => !isWarning(line));
    expect({ code, err }).toEqual({ code: 0, err: [] });
  });

  it.each([
    ["keys that are not there", "", "keys.toml: the keys file cannot be read (ENOENT)"],
    ["keys that are none", "[plans", "keys.toml"],
    ["an identity that is not there", null, "identity.keypair: "],
  ])("reports %s, as an edge would, exit code 1", async (_, keys, warning) => {
    if (keys === null) writeKeys();
    else if (keys !== "") writeFileSync(join(directory, "keys.toml"), keys);
    const identity = keys === null ? '[identity]\nkeypair = "identity.json"\n' : "";
    const { code, out, err } = await check(
      `[tip]\naccounts = ["${TIP}"]\n[accounts]\n${KEYS}\n${identity}`,
    );
    expect(code).toBe(1);
    expect(out).toContain("[accounts]");
    expect(err.split("\n")).toEqual([
      expect.stringMatching(/: an edge on this machine would not start: /),
    ]);
    expect(err).toContain(warning);
  });

  it("reports what the portable engine is for, and accepts the configuration", async () => {
    writeKeys();
    const { code, err, warnings } = await check(
      `[tip]\naccounts = ["${TIP}"]\n[accounts]\n${KEYS}\n[send]\nengine = "portable"\n`,
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(warnings).toContainEqual(
      expect.stringMatching(/would warn: the portable engine is for development/),
    );
  });

  it("reports what an edge on this machine would warn of, exit code 0", async () => {
    writeKeys();
    const file = join(directory, "touchdown.toml");
    writeFileSync(
      file,
      `[tip]\naccounts = ["${TIP}"]\n[accounts]\n${KEYS}\n` +
        '[http]\nlisten = "127.0.0.1:0"\n[admin]\nlisten = "0.0.0.0:0"\n',
    );
    const command = 'ulimit -n 1000; exec "$0" "$@"';
    const words = [process.execPath, MAIN, "check", "--config", file];
    const { status, stderr } = spawnSync("sh", ["-c", command, ...words], { encoding: "utf8" });
    expect(status).toBe(0);
    const warning = (text: string) => `an edge on this machine would warn: ${text}`;
    expect(stderr).toContain(warning("admin.listen: 0.0.0.0:0 is every address of this machine"));
    expect(stderr).toContain(
      warning("http.connections is 20000, and the limit of open files (ulimit -n) is 1000"),
    );
  });

  it("reports what is valid but not possible with these settings, exit code 1", async () => {
    const { code, out, err } = await check(
      `[tip]\naccounts = ["${TIP}"]\n[accounts]\ndatabase_url = "postgres://u:s3cret@db/x"\n` +
        '[quic]\nlisten = "127.0.0.1:0"\n[send]\nengine = "portable"\n',
    );
    expect(code).toBe(1);
    expect(err).toContain("quic.listen: QUIC clients are served by the threads of http.threads");
    expect(out + err).not.toContain("s3cret");
  });
});

describe("check of an edge whose ports are in use", () => {
  const edgeToml = (admin: string) =>
    `[http]\nlisten = "${admin}"\n[admin]\nlisten = "${admin.replace("127.0.0.1", "0.0.0.0")}"\n` +
    `[tip]\naccounts = ["${TIP}"]\n[accounts]\n${KEYS}\n`;

  /** `httpPort`: null for that of the admin listener. */
  async function checkBeside(answerOf: (port: number) => string, httpPort: number | null = null) {
    writeKeys();
    const server = createServer((_, response) => response.end(answerOf(port)));
    const port = await listening(server, "127.0.0.1", 0);
    const toml = edgeToml(`127.0.0.1:${port}`);
    const other = `[http]\nlisten = "127.0.0.1:${httpPort}"`;
    const result = await check(httpPort === null ? toml : toml.replace(/^\[http\]\n.*$/m, other));
    await new Promise((resolve) => server.close(resolve));
    return result;
  }

  it("exits with 0 if they are those of the edge that it is to replace", async () => {
    const edge = { region: "local", name: hostname() };
    // Version 0.1.0 does not say which edge it is.
    for (const answer of [{ process: {}, edge }, { process: {} }]) {
      const { code, err } = await checkBeside(() => JSON.stringify(answer));
      expect(code).toBe(0);
      expect(err).toContain("the edge that runs now uses this: http.listen: ");
    }
  });

  it("exits with 1 if they are those of another edge, and names it", async () => {
    const edge = { region: "local", name: "another" };
    const { code, err } = await checkBeside(() => JSON.stringify({ process: {}, edge }));
    expect(code).toBe(1);
    expect(err).toContain("an edge on this machine would not start: http.listen: ");
    expect(err).toContain("(edge another of region local answers at admin.listen)");
  });

  it("exits with 1 if the edge that it is to replace does not use one of them", async () => {
    const edge = { region: "local", name: hostname() };
    const server = createServer();
    const taken = await listening(server, "127.0.0.1", 0);
    for (const isOwn of [true, false]) {
      const { code, err } = await checkBeside((port) => {
        const ports = [`tcp ${port}`, `${isOwn ? "tcp" : "udp"} ${taken}`];
        return JSON.stringify({ process: {}, edge, ports });
      }, taken);
      expect(code).toBe(isOwn ? 0 : 1);
      const uses = isOwn
        ? "the edge that runs now uses this"
        : "an edge on this machine would not start";
      expect(err).toContain(`${uses}: http.listen: cannot listen on 127.0.0.1:${taken}: `);
      expect(err).toContain("the edge that runs now uses this: admin.listen: ");
    }
    await new Promise((resolve) => server.close(resolve));
  });

  it("takes the journal in use for that of the edge that answers", async () => {
    const ports = { "http.listen": ["tcp 8080"] };
    const inUse = ["accounts.journal: keys.journal is in use by process 7"];
    const running = { name: "edge", ports: ["tcp 9"] };
    const subject = { one: "", running: "", path: "/", name: "edge", ports };
    const server = createServer((_, response) => response.end());
    const at = { host: "127.0.0.1", port: await listening(server, "127.0.0.1", 0) };
    for (const [name, users] of [
      ["edge", { own: inUse, foreign: [], other: "" }],
      ["another", { own: [], foreign: inUse, other: " (another answers at admin.listen)" }],
    ] as const) {
      const runningIn = () => ({ ...running, name });
      expect(await usersOf({ ...subject, runningIn }, inUse, at, systemClock)).toEqual(users);
    }
    await new Promise((resolve) => server.close(resolve));
  });

  it("exits with 1 if they are those of another program", async () => {
    const { code, err } = await checkBeside(() => "hello\n");
    expect(code).toBe(1);
    expect(err).toContain("an edge on this machine would not start: http.listen: ");
  });
});

describe("check of a control file", () => {
  it("requires what the control process reads, and nothing of an edge", async () => {
    const { code, err } = await check('[control]\npublic_url = "https://dash.example"\n');
    expect(code).toBe(1);
    expect(err).toContain("  control.oidc_issuer: must be given");
    expect(err).toContain("  accounts.database_url: must be given");
    expect(err).not.toContain("tip.accounts");
  });

  it("takes a port in use for the running process's only if that has it", async () => {
    const server = createServer();
    const taken = await listening(server, "127.0.0.1", 0);
    const older = { status: "ready", checks: [{ name: "provider" }] };
    for (const [answerOf, code] of [
      [(port: number) => ({ service: "control", ports: [`tcp ${port}`] }), 1],
      [(port: number) => ({ service: "control", ports: [`tcp ${port}`, `tcp ${taken}`] }), 0],
      [() => older, 0],
      [(port: number) => ({ service: "edge", ports: [`tcp ${port}`, `tcp ${taken}`] }), 1],
    ] as const) {
      const admin = createServer((_, response) => response.end(JSON.stringify(answerOf(port))));
      const port = await listening(admin, "127.0.0.1", 0);
      const found = await check(
        `[admin]\nlisten = "127.0.0.1:${port}"\n[control]\nlisten = "127.0.0.1:${taken}"\n` +
          'public_url = "https://dash.example"\noidc_issuer = "https://login.example"\n' +
          'oidc_client_id = "td"\nvault_file = "vault.json"\n' +
          '[accounts]\ndatabase_url = "postgres://u@db/x"\n',
      );
      await new Promise((resolve) => admin.close(resolve));
      expect(found.code, JSON.stringify(answerOf(port))).toBe(code);
      const who = code === 0 ? "the control process that runs now uses this" : "would not start";
      expect(found.err).toContain(`${who}: control.listen: cannot listen on 127.0.0.1:${taken}`);
    }
    await new Promise((resolve) => server.close(resolve));
  });

  it("prints it with secrets hidden", async () => {
    const { code, out, err } = await check(
      '[admin]\nlisten = "127.0.0.1:0"\n[control]\nlisten = "127.0.0.1:0"\n' +
        'public_url = "https://dash.example"\noidc_issuer = "https://login.example"\n' +
        'oidc_client_id = "td"\noidc_client_secret = "s3cret"\nvault_file = "vault.json"\n' +
        'regions = ["fra=https://fra.example"]\n' +
        '[accounts]\ndatabase_url = "postgres://u:s3cret@db/x"\n',
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain('oidc_client_secret = "hidden"');
    expect(out).not.toContain("s3cret");
  });
});
