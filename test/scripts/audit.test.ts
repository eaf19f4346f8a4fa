import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const SCRIPT = fileURLToPath(new URL("../../scripts/audit.mjs", import.meta.url));

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-audit-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Runs the script where the folder's programs are the only ones. */
function audit(database: string | null) {
  const env = { PATH: folder, ...(database === null ? {} : { ADVISORY_DB: database }) };
  return spawnSync(process.execPath, [SCRIPT], { encoding: "utf8", env });
}

/** A cargo that knows `audit` and says what it was asked, or does not know it. */
function placeCargo(knowsAudit: boolean, status = 0): void {
  const known = `#!/bin/sh\necho "$@"\ncase "$*" in *--version) exit 0;; esac\nexit ${status}\n`;
  const text = knowsAudit ? known : "#!/bin/sh\nexit 101\n";
  writeFileSync(join(folder, "cargo"), text, { mode: 0o755 });
}

describe("npm run audit", () => {
  it("says that ADVISORY_DB must name the database", () => {
    placeCargo(true);
    const { status, stderr } = audit(null);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^audit: ADVISORY_DB must name a copy of RustSec's advisory database/);
  });

  it("says that what ADVISORY_DB names is no database", () => {
    placeCargo(true);
    const { status, stderr } = audit(join(folder, "none"));
    expect(status).toBe(1);
    expect(stderr).toContain(`${join(folder, "none")} holds no folder crates`);
  });

  it.each([
    ["there is no cargo", () => undefined],
    ["cargo has no audit", () => placeCargo(false)],
  ])("says what to install where %s", (_, prepare) => {
    prepare();
    const { status, stderr } = audit(database());
    expect(status).toBe(1);
    expect(stderr).toBe("audit: cargo-audit is missing: cargo install cargo-audit --locked\n");
  });

  it.each([0, 1])("holds the native engine's lockfile against the database, exit %d", (code) => {
    placeCargo(true, code);
    const { status, stdout } = audit(database());
    expect(status).toBe(code);
    expect(stdout).toMatch(/^audit .*--no-fetch .*native\/Cargo\.lock$/m);
    expect(stdout).toContain(`--db ${database()}`);
  });
});

/** A folder of the form that the database has. */
function database(): string {
  const path = join(folder, "db");
  mkdirSync(join(path, "crates"), { recursive: true });
  return path;
}
