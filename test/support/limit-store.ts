/** A store of shared limits in this process: a bucket for each account, on the test's clock. */

import type { LimitStore } from "../../src/accounts/global-limits/sync.ts";
import type { Clock } from "../../src/core/clock.ts";

export interface FakeStore extends LimitStore {
  up: boolean;
  /** Nothing is heard of it for so long. */
  lagMs: number;
  /** After that it fails, and has not heard what was asked. */
  hangs: boolean;
  /** It hears, and its answers do not arrive. */
  losesResponses: boolean;
  /** Requests it was told of. */
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
