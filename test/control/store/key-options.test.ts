import { describe, expect, it } from "vitest";
import type { KeyOptions } from "../../../src/control/store/contract.ts";
import { checkOptions } from "../../../src/control/store/key-options.ts";
import { plain } from "./fixture.ts";

const plan = { name: "Beta", ratePerSecond: 50, burst: 100, shared: false, rights: {} };
const NOW = 1_000_000;
const check = (options: Partial<KeyOptions>) => checkOptions({ ...plain, ...options }, plan, NOW);

describe("a key's options", () => {
  it.each<Partial<KeyOptions>>([
    {},
    { label: "x".repeat(64) },
    { label: "naïve 日本 👩‍💻" },
    { expiresAtMs: NOW + 1 },
    { ratePerSecond: 50, burst: 100 },
    { ratePerSecond: 0.1, burst: 1 },
    { cidrs: ["10.0.0.0/8", "192.0.2.1", "::1/128", "2001:db8::/0"] },
  ])("%j are taken", (options) => {
    expect(check(options)).toMatchObject({ kind: "ok" });
  });

  it.each<[Partial<KeyOptions>, RegExp]>([
    [{ label: "x".repeat(65) }, /label must have 0 to 64 characters .*, has 65/],
    [{ label: "a\u0007b" }, /without control/],
    [{ label: "a\u202eb" }, /without control/],
    [{ expiresAtMs: NOW }, /to come/],
    [{ expiresAtMs: Number.NaN }, /to come/],
    [{ expiresAtMs: NOW + 11 * 366 * 86_400_000 }, /within 10 years/],
    [{ ratePerSecond: 1 }, /both, requests a second and a burst/],
    [{ ratePerSecond: 50.1, burst: 1 }, /at most the plan's 50, is 50.1/],
    [{ ratePerSecond: 0, burst: 1 }, /above 0/],
    [{ ratePerSecond: Number.NaN, burst: 1 }, /above 0/],
    [{ ratePerSecond: 1, burst: 101 }, /1 to the plan's 100, is 101/],
    [{ ratePerSecond: 1, burst: 1.5 }, /whole number/],
    [{ cidrs: ["10.0.0.0/33"] }, /is "10.0.0.0\/33"/],
    [{ cidrs: ["10.0.0"] }, /network/],
    [{ cidrs: ["::1/032"] }, /is "::1\/032"/],
    [{ cidrs: ["10.0.0.0/08"] }, /network/],
    [{ cidrs: ["fe80::1%eth0/64"] }, /network/],
    [{ cidrs: ["'; drop table keys; --"] }, /network/],
    [{ cidrs: new Array<string>(33).fill("10.0.0.0/8") }, /32 networks, has 33/],
  ])("%j are refused", (options, detail) => {
    expect(check(options)).toMatchObject({
      kind: "refused",
      reason: "invalid",
      detail: expect.stringMatching(detail),
    });
  });
});
