/**
 * An in-process store of shared limits: a bucket for each account, on the test's clock.
 */

import type { LimitStore } from "../../src/accounts/global-limits/sync.ts";
import type { Clock } from "../../src/core/clock.ts";

export interface FakeStore extends LimitStore {
  up: boolean;
  /** It does not respond for this long. */
  lagMs: number;
  /** After that it fails, without having processed the request. */
  hangs: boolean;
  /** It processes requests, and its responses are lost. */
  losesResponses: boolean;
  /** Requests it received. */
  told: number;
}

export function createFakeStore(clock: Clock, edgeCount = 1): FakeStore {
  const full = new Map<string, number>();
  const isThere = async (): Promise<void> => {
    if (!store.up) throw new Error("away");
    const { lagMs } = store;
    if (lagMs > 0) await new Promise<void>((resolve) => clock.after(lagMs, resolve));
    if (store.hangs) throw new Error("no answer");
  };
  const store: FakeStore = {
    ...{ up: true, lagMs: 0, hangs: false, losesResponses: false, told: 0 },
    start() {},
    async spend(spent) {
      const behindUs = spent.map(({ account, count, intervalNs, ageNs }) => {
        if (!store.up || store.hangs) return 0;
        const base = Math.max(full.get(account) ?? 0, clock.nowNs() - ageNs);
        const next = base + count * intervalNs;
        full.set(account, next);
        store.told += count;
        return Math.max(0, next - clock.nowNs()) / 1_000;
      });
      await isThere();
      if (store.losesResponses) throw new Error("lost");
      return behindUs;
    },
    async heartbeat() {
      await isThere();
      if (store.losesResponses) throw new Error("lost");
      return edgeCount;
    },
    stop() {},
  };
  return store;
}
