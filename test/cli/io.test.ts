import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readInput } from "../../src/cli/io.ts";
import { SetupError } from "../../src/core/errors.ts";
import { COMMAND_INPUT_BYTES_MAX } from "../../src/core/limits.ts";
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

  it("takes a file of the largest size and refuses one byte more", async () => {
    const file = join(directory, "tx");
    writeFileSync(file, Buffer.alloc(COMMAND_INPUT_BYTES_MAX));
    expect(await readInput(file, createFakeIo())).toHaveLength(COMMAND_INPUT_BYTES_MAX);
    writeFileSync(file, Buffer.alloc(COMMAND_INPUT_BYTES_MAX + 1));
    await expect(readInput(file, createFakeIo())).rejects.toThrow(SetupError);
  });

  it("says why a file cannot be read", async () => {
    await expect(readInput(directory, createFakeIo())).rejects.toThrow(/EISDIR/);
  });
});
