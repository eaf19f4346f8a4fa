import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { nameThread } from "../../src/runtime/thread-name.ts";

const folder = mkdtempSync(join(tmpdir(), "thread-name-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("writes the name where the system takes it", () => {
  nameThread("td-decode", folder);
  expect(readFileSync(join(folder, "comm"), "utf8")).toBe("td-decode");
});

it("does nothing on a system without such a place", () => {
  expect(() => nameThread("td-decode", join(folder, "missing"))).not.toThrow();
});
