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

it("upgrade signals only an edge, whatever answers at the admin listener", async () => {
  // Any local process can listen there while no edge runs, and name another process.
  const other = spawn("sleep", ["60"]);
  const process = { ...JSON.parse(ownIdentity()), pid: other.pid };
  const server = createServer((_, response) => response.end(JSON.stringify({ process })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const folder = mkdtempSync(join(tmpdir(), "touchdown-upgrade-"));
  try {
    const { port } = server.address() as AddressInfo;
    const config = join(folder, "touchdown.toml");
    const tip = '[tip]\naccounts = ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"]\n';
    const admin = `[admin]\nlisten = "127.0.0.1:${port}"\n`;
    writeFileSync(config, `${tip}[accounts]\nkeys_file = "keys.toml"\n${admin}`);
    const io = createFakeIo();
    const ended = new Promise<string>((resolve) => other.once("exit", () => resolve("it ended")));
    expect(await Promise.race([run(["upgrade", "--config", config], io), ended])).toBe(1);
    expect(io.errLines.join()).toContain(`process ${other.pid} does not expect SIGUSR2`);
    expect(other.signalCode).toBeNull();
  } finally {
    other.kill();
    server.close();
    rmSync(folder, { recursive: true });
  }
});
