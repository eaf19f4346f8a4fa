import { describe, expect, it } from "vitest";
import { formatAddress, parseAddress, serverNameOf } from "../../src/core/address.ts";

describe("a leader's address", () => {
  it.each([
    ["127.0.0.1:8009", "127.0.0.1", 8009, 4],
    ["223.0.0.1:80", "223.0.0.1", 80, 4],
    ["[::1]:1", "::1", 1, 6],
    ["[ff::1]:1", "ff::1", 1, 6],
    ["[fe8::1]:1", "fe8::1", 1, 6],
    ["[::ffff:10.0.0.1]:1", "::ffff:10.0.0.1", 1, 6],
    ["[2001:0DB8::0001]:65535", "2001:db8::1", 65535, 6],
  ] as const)("is parsed from %s", (text, host, port, family) => {
    expect(parseAddress(text)).toEqual({ host, port, family });
  });

  it.each([
    "",
    "127.0.0.1",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "127.0.0.1:08009",
    "1.2.3:80",
    "256.1.1.1:80",
    "::1:80",
    "[127.0.0.1]:80",
    "localhost:80",
    "127.0.0.1:80 ",
    "0.0.0.0:80",
    "0.0.0.5:80",
    "255.255.255.255:80",
    "[fe80::1]:80",
    "[2001:db8::1%eth0]:80",
    "224.0.0.1:80",
    "239.255.255.255:80",
    "[::]:80",
    "[0:0::0]:80",
    "[FF02::1]:80",
    "[::ffff:0.0.0.5]:80",
    "[::ffff:224.0.0.1]:80",
    "[::FFFF:ffff:ffff]:80",
  ])("is rejected from %j", (text) => {
    expect(parseAddress(text)).toBeNull();
  });

  it("is formatted as it is parsed", () => {
    expect(formatAddress("10.0.0.1", 5)).toBe("10.0.0.1:5");
    expect(formatAddress("::1", 5)).toBe("[::1]:5");
  });

  it("gives a valid server name", () => {
    expect(serverNameOf({ host: "10.0.0.1", port: 5, family: 4 })).toBe("10.0.0.1.5.sol");
    expect(serverNameOf({ host: "::1", port: 5, family: 6 })).toBe("x--1x.5.sol");
  });
});
