import { expect, it } from "vitest";
import { OTHER_SERVER, requireSameServer } from "../../src/edge/inherited-listener.ts";

it("a successor has ingress threads where its predecessor has them, and nowhere else", () => {
  requireSameServer({ socket: 5 }, true);
  requireSameServer({ socket: null }, false);
  expect(() => requireSameServer({ socket: 5 }, false)).toThrow(OTHER_SERVER);
  expect(() => requireSameServer({ socket: null }, true)).toThrow(OTHER_SERVER);
});
