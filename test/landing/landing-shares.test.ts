import { describe, expect, it } from "vitest";
import { END_REASONS, type EndReason } from "../../src/core/errors.ts";
import {
  createLandingShares,
  SHARE_ACCOUNTS_MAX,
  SHARE_FLOOR,
  SHARE_START,
  SHARE_WEIGHT,
} from "../../src/landing/landing-shares.ts";
import { endOf } from "./fixture.ts";

describe("the landed share of an account", () => {
  it("starts neutral, and approaches 1 with landings", () => {
    const shares = createLandingShares();
    expect(shares.shareOf("a")).toBe(SHARE_START);
    for (let count = 0; count < 200; count += 1) shares.ended("a", endOf("landed", null));
    shares.renew();
    expect(shares.shareOf("a")).toBeGreaterThan(0.99);
    expect(shares.shareOf("a")).toBeLessThanOrEqual(1);
    expect(shares.shareOf("b")).toBe(SHARE_START);
  });

  it("does not fall below the floor, and recovers from it", () => {
    const shares = createLandingShares();
    for (let count = 0; count < 1_000; count += 1) {
      shares.ended("a", endOf("expired", "blockhash_expired"));
    }
    shares.renew();
    expect(shares.shareOf("a")).toBe(SHARE_FLOOR);
    for (let count = 0; count < 32; count += 1) shares.ended("a", endOf("landed", null));
    shares.renew();
    expect(shares.shareOf("a")).toBeGreaterThan(SHARE_START);
  });

  it("stays as it is until it is renewed, then includes all that ended since", () => {
    const shares = createLandingShares();
    shares.ended("a", endOf("landed", null));
    shares.ended("a", endOf("landed", null));
    expect(shares.shareOf("a")).toBe(SHARE_START);
    shares.renew();
    const once = SHARE_START + SHARE_WEIGHT * (1 - SHARE_START);
    expect(shares.shareOf("a")).toBe(once + SHARE_WEIGHT * (1 - once));
    shares.ended("a", endOf("expired", "blockhash_expired"));
    expect(shares.shareOf("a")).toBe(once + SHARE_WEIGHT * (1 - once));
    shares.renew();
    expect(shares.shareOf("a")).toBeLessThan(once + SHARE_WEIGHT * (1 - once));
  });

  it("reports the shares that changed with each renewal, also of accounts that start anew", () => {
    const shares = createLandingShares();
    expect(shares.renew().size).toBe(0);
    shares.ended("a", endOf("landed", null));
    shares.ended("b", endOf("landed", null));
    expect([...shares.renew()]).toEqual([
      ["a", shares.shareOf("a")],
      ["b", shares.shareOf("b")],
    ]);
    expect(shares.renew().size).toBe(0);
    for (let n = 0; n < SHARE_ACCOUNTS_MAX - 1; n += 1)
      shares.ended(`more-${n}`, endOf("landed", null));
    const changed = shares.renew();
    expect(changed.get("a")).toBe(SHARE_START);
    expect([changed.has("b"), changed.size]).toEqual([false, SHARE_ACCOUNTS_MAX]);
  });

  it("weighs recent ends more", () => {
    const [worse, better] = [createLandingShares(), createLandingShares()];
    for (let count = 0; count < 40; count += 1) {
      const isEarly = count < 20;
      worse.ended("a", endOf(isEarly ? "landed" : "expired", isEarly ? null : "blockhash_expired"));
      better.ended(
        "a",
        endOf(isEarly ? "expired" : "landed", isEarly ? "blockhash_expired" : null),
      );
    }
    for (const shares of [worse, better]) shares.renew();
    expect(better.shareOf("a")).toBeGreaterThan(worse.shareOf("a"));
  });

  it("counts only ends that the transaction caused", () => {
    const counted = (Object.keys(END_REASONS) as EndReason[]).filter((reason) => {
      const shares = createLandingShares();
      shares.ended("a", endOf(reason === "blockhash_expired" ? "expired" : "dropped", reason));
      shares.renew();
      return shares.shareOf("a") !== SHARE_START;
    });
    expect(counted).toEqual(["blockhash_expired", "blockhash_unknown"]);
  });

  it("falls with a transaction that lands and fails, because its tip is not paid", () => {
    const shares = createLandingShares();
    shares.ended("a", { ...endOf("landed", null), error: "InstructionError" });
    shares.renew();
    expect(shares.shareOf("a")).toBeLessThan(SHARE_START);
  });

  it("falls with a nonce that was not used until tracking ended", () => {
    const shares = createLandingShares();
    shares.ended("a", { ...endOf("dropped", "tracking_ended"), isNonceUnused: true });
    shares.ended("b", { ...endOf("dropped", "never_sent"), isNonceUnused: true });
    shares.ended("c", { ...endOf("landed", null), isNonceUnused: true });
    shares.renew();
    expect(shares.shareOf("a")).toBeLessThan(SHARE_START);
    expect(shares.shareOf("b")).toBe(SHARE_START);
    expect(shares.shareOf("c")).toBeGreaterThan(SHARE_START);
  });

  it("keeps a bounded number of accounts, those with recent ends", () => {
    const shares = createLandingShares();
    shares.ended("first", endOf("landed", null));
    shares.ended("second", endOf("landed", null));
    for (let count = 0; count < SHARE_ACCOUNTS_MAX - 1; count += 1) {
      if (count === 1) shares.ended("first", endOf("landed", null));
      shares.ended(`account ${count}`, endOf("landed", null));
    }
    shares.renew();
    expect(shares.size).toBe(SHARE_ACCOUNTS_MAX);
    expect(shares.shareOf("first")).toBeGreaterThan(SHARE_START);
    expect(shares.shareOf("second")).toBe(SHARE_START);
  });
});
