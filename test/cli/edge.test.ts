import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "../../src/cli/run.ts";
import { createFakeIo } from "../support/fake-io.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-edge-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

async function edge(text: string) {
  const file = join(directory, "touchdown.toml");
  writeFileSync(file, text);
  const io = createFakeIo();
  const code = await run(["edge", "--config", file], io);
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

describe("edge, before start", () => {
  it("rejects a wrong configuration with all its problems", async () => {
    const { code, err } = await edge("[http]\nlisten = 1\n");
    expect(code).toBe(1);
    for (const key of ["http.listen", "tip.accounts", "accounts"]) {
      expect(err).toContain(`  ${key}: `);
    }
  });

  it("rejects unsupported configuration instead of ignoring it", async () => {
    const { code, err } = await edge(
      `[tip]\naccounts = ["${TIP}"]\n[accounts]\ndatabase_url = "postgres://u:s3cret@db/x"\n` +
        '[quic]\nlisten = "127.0.0.1:0"\n[send]\nengine = "portable"\n',
    );
    expect(code).toBe(1);
    expect(err).toContain("quic.listen: QUIC clients are served by the threads of http.threads");
    expect(err).not.toContain("accounts.database_url");
    expect(err).not.toContain("s3cret");
  });
});
