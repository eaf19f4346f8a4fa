import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { run } from "../../src/cli/run.ts";
import { ownIdentity } from "../../src/runtime/process-identity.ts";
import { createFakeIo } from "../support/fake-io.ts";

/** Runs `upgrade` with a configuration at whose admin listener this answers. */
async function upgradeOf(answer: object) {
  const server = createServer((_, response) => response.end(JSON.stringify(answer)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const folder = mkdtempSync(join(tmpdir(), "touchdown-upgrade-"));
  try {
    const { port } = server.address() as AddressInfo;
    const config = join(folder, "touchdown.toml");
    const tip = '[tip]\naccounts = ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"]\n';
    const admin = `[admin]\nlisten = "127.0.0.1:${port}"\n`;
    writeFileSync(config, `${tip}[accounts]\nkeys_file = "keys.toml"\n${admin}`);
    const io = createFakeIo();
    return { code: await run(["upgrade", "--config", config], io), err: io.errLines.join() };
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
}

it("upgrade signals no edge that runs with another configuration", async () => {
  const other = spawn("sleep", ["60"]);
  const process = { ...JSON.parse(ownIdentity()), pid: other.pid };
  const { code, err } = await upgradeOf({ process, config: "/etc/touchdown/edge-2.toml" });
  other.kill();
  expect(code).toBe(1);
  expect(err).toMatch(/the edge that answers at \S+ runs with \/etc\/touchdown\/edge-2.toml, not /);
});

it("upgrade signals only an edge, whatever answers at the admin listener", async () => {
  // Any local process can listen there while no edge runs, and name another process.
  const other = spawn("sleep", ["60"]);
  try {
    const process = { ...JSON.parse(ownIdentity()), pid: other.pid };
    const ended = new Promise<string>((resolve) => other.once("exit", () => resolve("it ended")));
    expect(await Promise.race([upgradeOf({ process }), ended])).toEqual({
      code: 1,
      err: expect.stringContaining(`process ${other.pid} does not expect SIGUSR2`),
    });
    expect(other.signalCode).toBeNull();
  } finally {
    other.kill();
  }
});
