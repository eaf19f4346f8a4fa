import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SetupError } from "../../src/core/errors.ts";
import { requireSandboxPackages } from "../../src/sandbox/sandbox-packages.ts";

const manifest: {
  readonly peerDependencies: Readonly<Record<string, string>>;
} = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
const NAMES = Object.keys(manifest.peerDependencies);

describe("the packages of the sandbox", () => {
  it("are present in a clone", () => {
    expect(() => requireSandboxPackages()).not.toThrow();
  });

  it.each(NAMES)("are requested in one line that adds only %s when it is missing", (name) => {
    const others = NAMES.filter((other) => other !== name);
    const required = () => requireSandboxPackages((each) => others.includes(each));
    expect(required).toThrow(SetupError);
    const exact = `${name}@${manifest.peerDependencies[name]}`;
    expect(required).toThrow(`:\n\n  npm install --no-save --save-prod --omit=dev ${exact}\n`);
  });

  it("do not include a release's engine", () => {
    const peers = { "touchdown-native-linux-x64-gnu": "0.1.0", litesvm: "1.5.0" };
    expect(() => requireSandboxPackages((name) => name === "litesvm", peers)).not.toThrow();
    expect(() => requireSandboxPackages(() => false, peers)).toThrow(/needs \(litesvm\)/);
  });

  it("are requested together in one line", () => {
    const all = NAMES.map((name) => `${name}@${manifest.peerDependencies[name]}`).join(" ");
    expect(() => requireSandboxPackages(() => false)).toThrow(
      `npm install --no-save --save-prod --omit=dev ${all}`,
    );
  });
});
