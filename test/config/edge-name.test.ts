import { hostname } from "node:os";
import { expect, it } from "vitest";
import { edgeName } from "../../src/config/edge-name.ts";

it("an edge has the name of its configuration, or the host's", () => {
  expect(edgeName({ name: "fra-1" })).toBe("fra-1");
  expect(edgeName({ name: null })).toBe(hostname());
});
