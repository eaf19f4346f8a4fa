import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { run } from "../../src/cli/run.ts";
import { systemClock } from "../../src/core/clock.ts";
import { VERSION } from "../../src/runtime/version.ts";
import { createFakeIo } from "../support/fake-io.ts";

async function ran(...args: string[]) {
  const io = createFakeIo();
  const code = await run(args, io);
  return { code, out: io.outLines.join("\n"), err: io.errLines.join("\n") };
}

const NAMES = COMMANDS.map(({ name }) => name);

describe("touchdown", () => {
  it("lists its commands and exits with 2 when none is named", async () => {
    const { code, out, err } = await ran();
    expect({ code, out }).toEqual({ code: 2, out: "" });
    for (const name of NAMES) expect(err).toContain(`  ${name} `);
  });

  it.each(["--help", "-h", "help"])("lists its commands on %s", async (word) => {
    const { code, out } = await ran(word);
    expect(code).toBe(0);
    for (const name of NAMES) expect(out).toContain(`  ${name} `);
  });

  it.each(["--version", "-v", "-V", "version"])("prints its version on %s", async (word) => {
    expect(await ran(word)).toEqual({ code: 0, out: `touchdown ${VERSION}`, err: "" });
  });

  it("names a command that does not exist, exit code 2", async () => {
    const { code, err } = await ran("fly");
    expect(code).toBe(2);
    expect(err.split("\n")[0]).toBe('touchdown: there is no command "fly"');
  });

  it.each([
    ["sanbdox", "sandbox"],
    ["contol", "control"],
    ["Check", "check"],
    ["vesion", "version"],
    ["--vesrion", "--version"],
    ["-help", "--help"],
  ])("names the nearest command to %s, exit code 2", async (typed, meant) => {
    const { code, out, err } = await ran(typed, "--config", "x");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    const [first] = err.split("\n");
    expect(first).toBe(`touchdown: there is no command "${typed}", did you mean ${meant}?`);
  });
});

describe.each(NAMES)("%s", (name) => {
  it("has a --help that fits a screen", async () => {
    const { code, out } = await ran(name, "--help");
    expect(code).toBe(0);
    const lines = out.split("\n");
    expect(lines.length).toBeLessThanOrEqual(50);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);
    expect(out).toContain(`touchdown ${name}`);
    expect(out).not.toMatch(/^--/m);
  });

  it("rejects an unknown option, with its usage and exit code 2", async () => {
    const { code, out, err } = await ran(name, "--no-such-option");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("--no-such-option");
    expect(err).toContain(`Usage:\n  touchdown ${name}`);
  });
});

describe("a Node release line at its end of life", () => {
  /** The warning that a command prints on standard error, called with a surplus argument. */
  async function said(name: string, time: string): Promise<string> {
    const io = createFakeIo({ ...systemClock, unixMs: () => Date.parse(time) });
    await run([name, "surplus"], io);
    return io.errLines.filter((text) => text.includes("no security fixes")).join("\n");
  }
  const line = `Node ${Number.parseInt(process.versions.node, 10)}`;

  it.each(["sandbox", "edge", "control", "check"])("causes one warning by %s", async (name) => {
    const warning = await said(name, "2040-01-01");
    expect(warning).toMatch(new RegExp(`^touchdown ${name}: ${line} has had no security fixes`));
    expect(warning).not.toContain("\n");
  });

  it.each(["ready", "send", "keys"])("causes no warning by %s", async (name) => {
    expect(await said(name, "2040-01-01")).toBe("");
  });

  it("is determined by the date of the clock", async () => {
    expect(await said("edge", "2020-01-01")).toBe("");
  });
});

describe("a mistyped option", () => {
  it.each([
    [["edge", "--confg", "x"], "--confg", "--config"],
    [["edge", "--Config=x"], "--Config", "--config"],
    [["ready", "--config", "x", "--timout", "1s"], "--timout", "--timeout"],
    [["send", "a", "--key-flie", "x"], "--key-flie", "--key-file"],
    [["sandbox", "--hlep"], "--hlep", "--help"],
  ])("is reported with the nearest one: %j", async (args, typed, meant) => {
    const { code, out, err } = await ran(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    const [first] = err.replace(/^.*security.*\n/, "").split("\n");
    expect(first).toBe(`touchdown ${args[0]}: unknown option ${typed}, did you mean ${meant}?`);
  });

  it("is reported without a suggestion when nothing is near", async () => {
    const { code, err } = await ran("check", "--no-such-option");
    expect(code).toBe(2);
    expect(err.split("\n")[0]).toBe("touchdown check: unknown option --no-such-option");
  });

  it("is reported without its value, which may be a key", async () => {
    for (const args of [["--kye=s3cret"], ["-ks3cret"]]) {
      expect((await ran("send", "a", ...args)).err).not.toContain("s3cret");
    }
  });
});

describe("an option that is given twice", () => {
  it.each([
    [["check", "--config", "a", "--config", "a"], "--config"],
    [["check", "--config=a", "--config", "b"], "--config"],
    [["send", "a", "--wait", "--url", "http://a", "--wait"], "--wait"],
    [["send", "a", "--key", "s3cret", "--key", "s3cret"], "--key"],
  ])("is rejected, exit code 2: %j", async (args, name) => {
    const { code, out, err } = await ran(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err.split("\n")[0]).toBe(`touchdown ${args[0]}: ${name} is given twice`);
    expect(err).not.toContain("s3cret");
  });

  it("is not an option after --", async () => {
    const { err } = await ran("check", "--config", "a", "--", "--config");
    expect(err).toContain('one word too many: "--config"');
  });
});

describe("wrong usage", () => {
  it.each([
    ["a missing option", ["check"]],
    ["an option without its value", ["check", "--config"]],
    ["an empty value", ["check", "--config="]],
    ["one word too many", ["check", "--config", "x", "y"]],
    ["a missing configuration", ["edge"]],
    ["a timeout without a unit", ["ready", "--config", "x", "--timeout", "30"]],
    ["a port that is none", ["sandbox", "--port", "65536"]],
    ["a missing file", ["send", "--url", "http://a", "--key", "k"]],
    ["two files", ["send", "a", "b", "--url", "http://a", "--key", "k"]],
    ["a URL of another scheme", ["send", "a", "--url", "ftp://a", "--key", "k"]],
    ["no key", ["send", "a", "--url", "http://a"]],
    ["two keys", ["send", "a", "--url", "http://a", "--key", "k", "--key-file", "f"]],
    ["a key that no header can carry", ["send", "a", "--url", "http://a", "--key", "k\n"]],
    ["standard input for two", ["send", "-", "--url", "http://a", "--key-file", "-"]],
  ])("%s exits with 2", async (_, args) => {
    const { code, out } = await ran(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
  });

  it("never repeats a key", async () => {
    const { err } = await ran("send", "a", "--url", "http://a", "--key", "s3cret\n");
    expect(err).not.toContain("s3cret");
  });
});
