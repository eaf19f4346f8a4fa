/**
 * Cached keys over a real key table, and the authenticators of their threads, on this thread.
 */

import { createGlobalLimits, type LimitStore } from "../../src/accounts/global-limits/sync.ts";
import type { KeyRow, Plan } from "../../src/accounts/keys/key.ts";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { networksOf } from "../../src/accounts/keys/policy.ts";
import { createKeyTable } from "../../src/accounts/keys/table.ts";
import type { Clock } from "../../src/core/clock.ts";
import { createAccessControl } from "../../src/limits/access-control.ts";
import { GlobalDelegation } from "../../src/limits/global-delegation.ts";
import { GlobalLimitStates } from "../../src/limits/global-state.ts";
import type { KeySlotReleased, KeyUpdate } from "../../src/limits/key-cache-entry.ts";
import { createDelegatedLimits, createKeyCacheSync } from "../../src/limits/key-cache-sync.ts";
import {
  createKeyCacheMemory,
  keyUsedMarks,
  ThreadLimitStates,
} from "../../src/limits/thread-limit-states.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createKeyCacheAccess } from "./key-cache-access.ts";
import { silent } from "./postgres.ts";
import { HERE } from "./principals.ts";

export const PLAN: Plan = { name: "P", ratePerSecond: 1, burst: 3, shared: false };

/** A key of sixteen characters or more, and its restrictions. */
export function keyRow(
  token: string,
  account = "a",
  narrowed: Partial<KeyRow> & { readonly [K in "limit"]?: Plan } = {},
): KeyRow {
  const { limit, ...rest } = narrowed;
  const policy = limit === undefined ? null : { expiresUnixMs: null, networks: null, limit };
  const sha256 = tokenSha256(token);
  const keyId = sha256.toString("hex", 0, 16);
  return { sha256, keyId, account, plan: PLAN, label: null, policy, ...rest };
}

/**
 * The main thread: keys, its authenticator and key cache; limits are global where there is a store.
 */
export function keyCacheFixture(rows: readonly KeyRow[] = []) {
  return keyCacheFixtureOn(createFakeClock(), rows);
}

export function keyCacheFixtureOn<C extends Clock>(
  clock: C,
  rows: readonly KeyRow[],
  store: LimitStore | null = null,
) {
  const keys = createKeyTable(rows);
  const memory = createKeyCacheMemory();
  const delegated = createDelegatedLimits(memory);
  const options = { edge: "e", initialEdgeCount: 1 };
  const globalLimits = store && createGlobalLimits({ clock, log: silent, store }, options);
  globalLimits?.join(new GlobalLimitStates(memory));
  const globalDelegation = globalLimits && new GlobalDelegation(globalLimits);
  const access = createAccessControl({
    clock,
    keys,
    looksMistyped: () => false,
    globalLimits,
    delegated,
  });
  const keyCache = createKeyCacheSync({ clock, keys, delegated, globalDelegation, memory });
  const rest = { limitStates: new ThreadLimitStates(memory), usedMarks: keyUsedMarks(memory) };
  const limits = { delegated, globalDelegation, globalLimits };
  return { clock, keys, memory, ...limits, access, keyCache, ...rest };
}

type KeyCacheFixture = Pick<
  ReturnType<typeof keyCacheFixture>,
  "memory" | "access" | "keyCache"
> & {
  readonly clock: Clock;
};

/** One more thread, whose messages wait until `deliver`, copied as a port would. */
export function joinThread({ clock, memory, access, keyCache }: KeyCacheFixture) {
  const updates: KeyUpdate[] = [];
  const returned: KeySlotReleased[] = [];
  const holder = keyCache.join({ post: (message) => void updates.push(structuredClone(message)) });
  const own = createKeyCacheAccess({
    clock,
    memory,
    networksOf,
    port: { post: (message) => void returned.push(structuredClone(message)) },
  });
  return {
    holder,
    access: own,
    updates,
    returned,
    /** Delivers pending messages in both directions. */
    deliver() {
      for (const message of updates.splice(0)) own.onMessage(message);
      for (const message of returned.splice(0)) holder.onReturned(message);
    },
    /** A proxied request: the main thread knows the key, or not. */
    ask(token: string) {
      const principal = access.authenticate(token, HERE);
      if (principal !== null) holder.grant(token, principal);
    },
  };
}
