import { describe, expect, it } from "vitest";
import { exposureWarnings } from "../../src/config/exposure.ts";

const warnings = (host: string) => exposureWarnings({ host, port: 9090 });

describe("the warning of an exposed admin listener", () => {
  it.each([
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.31.0.1",
    "192.168.1.1",
    "169.254.1.1",
    "100.64.0.1",
    "::1",
    "fd12::1",
    "fe80::1",
    "::ffff:10.0.0.1",
    "localhost",
  ])("is not given for %s", (host) => {
    expect(warnings(host)).toEqual([]);
  });

  it.each([
    ["0.0.0.0", "0.0.0.0:9090 is every address of this machine"],
    ["::", "[::]:9090 is every address of this machine"],
    ["203.0.113.7", "203.0.113.7:9090 is public"],
    ["172.32.0.1", "172.32.0.1:9090 is public"],
    ["2001:db8::1", "[2001:db8::1]:9090 is public"],
  ])("is given for %s", (host, text) => {
    expect(warnings(host)).toEqual([
      expect.stringContaining(`admin.listen: ${text}, and the admin listener has no login`),
    ]);
  });
});
