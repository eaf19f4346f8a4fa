import { describe, expect, it } from "vitest";
import { busyPollOf, portableBindOf } from "../../src/engine/transport.ts";
import type { NativeEngine } from "../../src/native/contract.ts";
import { stub } from "../support/stub.ts";

const V4 = { host: "10.0.0.1", port: 7 };
const V6 = { host: "::1", port: 0 };

describe("the source addresses of the portable engine", () => {
  it("are one address of each family, in any order", () => {
    const both = { bindIpv4: "10.0.0.1", portIpv4: 7, bindIpv6: "::1", portIpv6: 0 };
    expect(portableBindOf([V4, V6])).toEqual(both);
    expect(portableBindOf([V6, V4])).toEqual(both);
    expect(portableBindOf([V6])).toEqual({ bindIpv6: "::1", portIpv6: 0 });
  });

  it("are rejected when a family has two, naming both", () => {
    const other = { host: "10.0.0.2", port: 0 };
    expect(() => portableBindOf([V4, other])).toThrow("10.0.0.1:7, 10.0.0.2:0");
    expect(() => portableBindOf([V4, V6, other])).toThrow("send.bind");
  });
});

describe("polling", () => {
  const native = { name: "native", native: stub<NativeEngine>({}) } as const;

  it("is enabled for the native engine on a machine with enough processors", () => {
    const asked = { busyPoll: true };
    expect(busyPollOf(asked, native, 4)).toBeGreaterThan(0);
    expect(() => busyPollOf(asked, native, 3)).toThrow("this machine has 3");
    expect(() => busyPollOf(asked, { name: "portable", native: null }, 64)).toThrow("portable");
    expect(busyPollOf({ busyPoll: false }, native, 1)).toBe(0);
  });
});
