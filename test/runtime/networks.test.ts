import { describe, expect, it } from "vitest";
import { networksOf } from "../../src/runtime/networks.ts";

describe("networks", () => {
  it("contain every address of a range and no other", () => {
    const networks = networksOf(["203.0.113.0/24", "2001:db8::/32"]);
    expect(networks.ranges).toEqual(["203.0.113.0/24", "2001:db8::/32"]);
    for (const address of ["203.0.113.0", "203.0.113.255", "2001:db8:ffff::1"]) {
      expect(networks.includes(address)).toBe(true);
    }
    for (const address of ["203.0.112.255", "203.0.114.0", "2001:db7::1", "", "x"]) {
      expect(networks.includes(address)).toBe(false);
    }
  });

  it("match a single address exactly", () => {
    const networks = networksOf(["203.0.113.7", "::1"]);
    expect(networks.includes("203.0.113.7")).toBe(true);
    expect(networks.includes("203.0.113.8")).toBe(false);
    expect(networks.includes("0000:0000:0000:0000:0000:0000:0000:0001")).toBe(true);
  });

  it("match an IPv4 address in its IPv6-mapped form, as a dual-stack socket reports it", () => {
    expect(networksOf(["10.0.0.0/8"]).includes("::ffff:10.1.2.3")).toBe(true);
  });

  it.each(["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/8/8", "10.0.0.0/", "host/8", "1/-1"])(
    "reject %j and quote it",
    (range) => {
      expect(() => networksOf([range])).toThrow(`${range} is no network`);
    },
  );
});
