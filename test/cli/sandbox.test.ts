import { describe, expect, it } from "vitest";
import { run } from "../../src/cli/run.ts";
import { createFakeIo } from "../support/fake-io.ts";

describe("sandbox", () => {
  it.each(["65536", "-1", "http", "80.5"])(
    "refuses --port=%s before it starts anything",
    async (port) => {
      const io = createFakeIo();
      expect(await run(["sandbox", `--port=${port}`], io)).toBe(2);
      expect(io.errLines.join()).toContain("--port must be a number from 0 to 65535");
    },
  );
});
