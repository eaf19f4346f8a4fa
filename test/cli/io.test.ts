import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readInput } from "../../src/cli/io.ts";
import { COMMAND_INPUT_BYTES_MAX } from "../../src/cli/limits.ts";
import { SetupError } from "../../src/core/errors.ts";
import { createFakeIo } from "../support/fake-io.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "touchdown-io-"));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

describe("readInput", () => {
  it("reads a file, or standard input for -", async () => {
    const file = join(directory, "tx");
    writeFileSync(file, "abc");
    const io = createFakeIo(undefined, Buffer.from("def"));
    expect(Buffer.from(await readInput(file, io)).toString()).toBe("abc");
    expect(Buffer.from(await readInput("-", io)).toString()).toBe("def");
  });

  it("accepts a file of the maximum size and rejects one byte more", async () => {
    const file = join(directory, "tx");
    writeFileSync(file, Buffer.alloc(COMMAND_INPUT_BYTES_MAX));
    expect(await readInput(file, createFakeIo())).toHaveLength(COMMAND_INPUT_BYTES_MAX);
    writeFileSync(file, Buffer.alloc(COMMAND_INPUT_BYTES_MAX + 1));
    await expect(readInput(file, createFakeIo())).rejects.toThrow(SetupError);
  });

  it("reports why a file cannot be read", async () => {
    await expect(readInput(directory, createFakeIo())).rejects.toThrow(/EISDIR/);
  });
});

describe("a service's output", () => {
  it("does not end it when the reader has closed the pipe", async () => {
    const io = join(import.meta.dirname, "../../dist/cli/io.js");
    const program = `
      import { processIo } from ${JSON.stringify(io)};
      process.stdin.once("data", () => {
        processIo.out("one");
        processIo.err("two");
        // The system's answer to both has come by then.
        setTimeout(() => process.exit(7), 100);
      });
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
    const ended = once(child, "exit");
    const closed = [once(child.stdout, "close"), once(child.stderr, "close")];
    child.stdout.destroy();
    child.stderr.destroy();
    await Promise.all(closed);
    child.stdin.write("go\n");
    expect(await ended).toEqual([7, null]);
  });
});
