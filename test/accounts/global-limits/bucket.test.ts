import { describe, expect, it } from "vitest";
import { Bucket, type BucketStates, costNs } from "../../../src/accounts/global-limits/bucket.ts";
import { NS_PER_MS, NS_PER_S } from "../../../src/core/clock.ts";
import { EngineLimits } from "../../support/engine-limits.ts";
import { fc } from "../../support/properties.ts";

const NOW = 864_000 * NS_PER_S;
const ACCOUNT = "a";
const plan = { name: "S", ratePerSecond: 10, burst: 20, shared: true };
const COST = costNs(plan);

/** A bucket that other threads charge: it is watched, and was not charged yet. */
function delegatedFixture(share = 1) {
  const limits = new EngineLimits();
  limits.setEdgeCount(share);
  limits.tryCharge(ACCOUNT, 0, plan);
  const [{ limitSlot } = { limitSlot: -1 }] = limits.takeCharged(1);
  const state = limits.state(ACCOUNT);
  Object.assign(state, { fullNs: 0, count: 0 });
  const bucket = new Bucket(COST, limits, limitSlot);
  bucket.look(NOW);
  const charge = (nowNs = NOW) => limits.tryCharge(ACCOUNT, nowNs, plan);
  return { limits, limitSlot, bucket, charge, state };
}

/** The limits with `between`, a charge of another thread, before each operation of this one. */
function interrupted(limits: EngineLimits, between: () => void): BucketStates {
  const after = <T>(act: () => T): T => {
    between();
    return act();
  };
  return {
    // The bucket, and then the count.
    read(limitSlot) {
      const { fullNs } = after(() => limits.read(limitSlot));
      return { ...after(() => limits.read(limitSlot)), fullNs };
    },
    replace: (...args) => after(() => limits.replace(...args)),
    release: (...args) => limits.release(...args),
    takeCharged: (countMax) => limits.takeCharged(countMax),
    setEdgeCount: (count) => limits.setEdgeCount(count),
  };
}

describe("delegated bucket", () => {
  it("behaves like a local bucket, also if edges divide the limit", () => {
    const step = fc.record({
      gapMs: fc.integer({ min: 0, max: 400 }),
      charges: fc.integer({ min: 0, max: 12 }),
      share: fc.integer({ min: 1, max: 30 }),
      act: fc.constantFrom("none", "reported", "failed"),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { limits, bucket: delegated, charge } = delegatedFixture();
        const local = new Bucket(COST);
        let nowNs = NOW;
        for (const { gapMs, charges, share, act } of steps) {
          nowNs += gapMs * NS_PER_MS;
          limits.setEdgeCount(share);
          for (let index = 0; index < charges; index += 1) {
            const wait = limits.waitNs(ACCOUNT, nowNs, plan);
            expect(wait).toBe(local.waitNs(plan, nowNs, share));
            expect(charge(nowNs)).toBe(local.tryCharge(plan, nowNs, share));
          }
          expect(delegated.look(nowNs)).toBe(local.look(nowNs));
          if (act === "reported" || act === "failed") {
            const [of, other] = [delegated.take("a", nowNs), local.take("a", nowNs)];
            expect(of.count).toBe(other.count);
            if (act === "reported")
              for (const one of [delegated, local]) one.settle(nowNs, gapMs, nowNs);
            else
              for (const [one, spent] of [[delegated, of] as const, [local, other] as const]) {
                one.putBack(spent, nowNs);
              }
          }
          expect(delegated.fullNs).toBe(local.fullNs);
        }
      }),
    );
  });

  it("reports the age of its first request, exactly if the bucket was full", () => {
    const { bucket, charge } = delegatedFixture();
    for (const _ of [1, 2, 3]) charge();
    expect(bucket.take("a", NOW + 70)).toMatchObject({ count: 3, ageNs: 70 });
    // The bucket is not full, so the request times do not matter; a late time errs on the strict
    // side.
    charge(NOW + 80);
    expect(bucket.take("a", NOW + 90)).toMatchObject({ count: 1, ageNs: 0 });
    const laterNs = NOW + NS_PER_S;
    bucket.look(laterNs);
    for (const _ of [1, 2]) charge(laterNs + 50);
    bucket.look(laterNs + 60);
    charge(laterNs + 70);
    expect(bucket.take("a", laterNs + 200)).toMatchObject({ count: 3, ageNs: 150 });
  });

  it("reports age 0 for a request that is counted but not charged yet", () => {
    const { bucket, state } = delegatedFixture();
    bucket.look(NOW);
    state.count += 1;
    // No charge is stored yet, and the initial time 0 is not the time of the request.
    const [first] = [bucket.take("a", NOW + NS_PER_S)];
    expect(first).toMatchObject({ count: 1, ageNs: 0 });
  });

  it("reports a request that is counted and then rejected, and subtracts it from the next", () => {
    const { bucket, charge, state } = delegatedFixture();
    charge();
    state.count += 1;
    expect(bucket.take("a", NOW).count).toBe(2);
    state.count -= 1;
    expect(bucket.take("a", NOW).count).toBe(0);
    charge();
    expect(bucket.take("a", NOW).count).toBe(0);
    charge();
    expect(bucket.take("a", NOW).count).toBe(1);
  });

  it("keeps counting when its 32-bit counter overflows", () => {
    const { charge, state, bucket } = delegatedFixture();
    state.count = 2 ** 31 - 2;
    while (bucket.look(NOW)) bucket.take("a", NOW);
    for (const _ of [1, 2, 3, 4]) charge();
    expect(state.count).toBeLessThan(0);
    expect(bucket.take("a", NOW).count).toBe(4);
  });
});

describe("store response while other threads charge", () => {
  it("loses no charge, at any point between its operations", () => {
    let callsMax = 0;
    for (let at = 0; at < 20; at += 1) {
      const { limits, limitSlot, state, charge } = delegatedFixture();
      let [calls, isOn, late] = [0, false, 0];
      const between = (): void => {
        if (isOn && calls === at) {
          late += 1;
          expect(charge()).toBe(0);
        }
        if (isOn) calls += 1;
      };
      const bucket = new Bucket(COST, interrupted(limits, between), limitSlot);
      for (const _ of [1, 2, 3]) charge();
      const reported = bucket.take("a", NOW).count;
      expect(reported).toBe(3);
      isOn = true;
      bucket.settle(NOW, reported * COST, NOW);
      isOn = false;
      callsMax = Math.max(callsMax, calls);
      expect(state.fullNs).toBe(NOW + (reported + late) * COST);
      expect(bucket.take("a", NOW).count).toBe(late);
    }
    // The last charges came after the end of the operation.
    expect(callsMax).toBeLessThan(20);
  });

  it("charges a request that is counted but not yet charged twice, until the next one", () => {
    const { bucket, charge, state } = delegatedFixture();
    charge();
    state.count += 1;
    const first = bucket.take("a", NOW).count;
    bucket.settle(NOW, first * COST, NOW);
    // What the other thread does next: the charge without the count.
    charge();
    state.count -= 1;
    expect([first, state.fullNs]).toEqual([2, NOW + 3 * COST]);
    bucket.settle(NOW, (first + bucket.take("a", NOW).count) * COST, NOW);
    expect(state.fullNs).toBe(NOW + 2 * COST);
  });
});

describe("failed batch that is put back", () => {
  it("keeps the time of its first request after later requests", () => {
    const bucket = new Bucket(COST);
    bucket.tryCharge(plan, NOW, 1);
    const spent = bucket.take("a", NOW + 100);
    bucket.tryCharge(plan, NOW + 150, 1);
    bucket.putBack(spent, NOW + 100);
    bucket.putBack({ ...spent, count: 0, ageNs: 0 }, NOW + 100);
    expect(bucket.take("a", NOW + 300)).toMatchObject({ count: 2, ageNs: 300 });
  });
});

describe("requests allowed while the store was unavailable", () => {
  const SHARE = 5;
  const OUTAGE = { share: SHARE, untilNs: NOW + 600 * NS_PER_S };

  /** A delegated and a local bucket after these charges: the second, and the edge count. */
  const both = (charges: readonly (readonly [number, number])[]): readonly Bucket[] => {
    const { limits, bucket, charge } = delegatedFixture(SHARE);
    const local = new Bucket(COST);
    for (const [second, share] of charges) {
      const nowNs = NOW + second * NS_PER_S;
      limits.setEdgeCount(share);
      expect([charge(nowNs), local.tryCharge(plan, nowNs, share)]).toEqual([0, 0]);
      for (const one of [bucket, local]) one.look(nowNs);
    }
    return [bucket, local];
  };
  const reported = (bucket: Bucket, seconds: number) => {
    const nowNs = NOW + seconds * NS_PER_S;
    bucket.repay(OUTAGE, nowNs);
    const { count, ageNs } = bucket.take("a", nowNs);
    return { count, ageNs };
  };
  const at = (second: number, count: number, share = SHARE) =>
    Array.from({ length: count }, () => [second, share] as const);

  it("are reported as of now, minus what this edge's share refilled", () => {
    for (const bucket of both([...at(0, 2), ...at(300, 1), ...at(600, 4)])) {
      expect(reported(bucket, 600.5)).toEqual({ count: 3, ageNs: 0 });
    }
    for (const bucket of both(at(0, 4)))
      expect(reported(bucket, 600)).toEqual({ count: 0, ageNs: 0 });
  });

  it("are reported in full, as of their time, after less than 2 s", () => {
    for (const bucket of both(at(0, 4))) {
      expect(reported(bucket, 1.5)).toEqual({ count: 4, ageNs: 1.5 * NS_PER_S });
    }
  });

  it("are reported in full if they came after the outage, even 5 s later", () => {
    for (const bucket of both(at(600, 4))) {
      expect(reported(bucket, 605)).toEqual({ count: 4, ageNs: 5 * NS_PER_S });
    }
  });

  it("include a burst from just before the outage, refilled at the same rate", () => {
    for (const bucket of both(at(0, 20, 1))) {
      expect(reported(bucket, 3)).toEqual({ count: 14, ageNs: 0 });
    }
  });
});

describe("bucket with a changed price", () => {
  it("charges the new price for later requests", () => {
    const bucket = new Bucket(COST);
    for (let request = 0; request < 20; request += 1) bucket.tryCharge(plan, NOW, 1);
    bucket.reprice(10 * COST, NOW);
    bucket.tryCharge({ ...plan, ratePerSecond: 1 }, NOW, 1);
    const reported = { count: 3, intervalNs: 10 * COST };
    expect(bucket.take("a", NOW)).toMatchObject(reported);
    // The plan returns to the old price before the failed batch is put back.
    bucket.reprice(COST, NOW);
    bucket.putBack({ account: "a", ...reported, ageNs: 0 }, NOW);
    expect(bucket.take("a", NOW)).toMatchObject({ count: 30, intervalNs: COST });
  });

  it("reports later charges of other threads at their price", () => {
    const { bucket, limits } = delegatedFixture();
    for (let request = 0; request < 20; request += 1) limits.tryCharge(ACCOUNT, NOW, plan);
    expect(bucket.take("a", NOW)).toMatchObject({ count: 20, intervalNs: COST });
    const slow = { ...plan, ratePerSecond: 1, burst: 100 };
    for (const _ of [1, 2]) expect(limits.tryCharge(ACCOUNT, NOW, slow)).toBe(0);
    expect(bucket.take("a", NOW)).toMatchObject({ count: 2, intervalNs: 10 * COST });
  });

  it("reports no more than its charges after any number of changes", () => {
    const bucket = new Bucket(COST);
    const slow = { ...plan, ratePerSecond: 1, burst: 1_000 };
    let reportedNs = 0;
    for (let request = 0; request < 100; request += 1) {
      bucket.reprice(COST, NOW);
      bucket.tryCharge({ ...plan, burst: 1_000_000 }, NOW, 1);
      bucket.reprice(10 * COST, NOW);
      if (request % 2 === 0) bucket.tryCharge(slow, NOW, 1);
      const { count, intervalNs } = bucket.take("a", NOW);
      reportedNs += count * intervalNs;
    }
    expect(reportedNs).toBeGreaterThan((100 + 500 - 10 - 1) * COST);
    expect(reportedNs).toBeLessThanOrEqual((100 + 500) * COST);
  });
});
