/**
 * Cached keys over a real key table, and the authenticators of their threads, on this thread.
 */

import { createSharedLimits, type LimitStore } from "../../src/accounts/global-limits/sync.ts";
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
  SharedLimitStates,
} from "../../src/limits/shared-state.ts";
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
 * The main thread: keys, its authenticator and key cache; limits are shared where there is a store.
 */
export function keyCacheScene(rows: readonly KeyRow[] = []) {
  return keyCacheSceneOn(createFakeClock(), rows);
}

export function keyCacheSceneOn<C extends Clock>(
  clock: C,
  rows: readonly KeyRow[],
  store: LimitStore | null = null,
) {
  const keys = createKeyTable(rows);
  const memory = createKeyCacheMemory();
  const delegated = createDelegatedLimits(memory);
  const options = { edge: "e", initialEdgeCount: 1 };
  const sharedLimits = store && createSharedLimits({ clock, log: silent, store }, options);
  sharedLimits?.join(new GlobalLimitStates(memory));
  const shared = sharedLimits && new GlobalDelegation(sharedLimits);
  const access = createAccessControl({
    clock,
    keys,
    looksMistyped: () => false,
    sharedLimits,
    delegated,
  });
  const keyCache = createKeyCacheSync({ clock, keys, delegated, shared, memory });
  const rest = { limitStates: new SharedLimitStates(memory), usedMarks: keyUsedMarks(memory) };
  return { clock, keys, memory, delegated, shared, sharedLimits, access, keyCache, ...rest };
}

type Scene = Pick<ReturnType<typeof keyCacheScene>, "memory" | "access" | "keyCache"> & {
  readonly clock: Clock;
};

/** One more thread, whose messages wait until `deliver`, copied as a port would. */
export function joinThread({ clock, memory, access, keyCache }: Scene) {
  const news: KeyUpdate[] = [];
  const returned: KeySlotReleased[] = [];
  const holder = keyCache.join({ post: (message) => void news.push(structuredClone(message)) });
  const own = createKeyCacheAccess({
    clock,
    memory,
    networksOf,
    port: { post: (message) => void returned.push(structuredClone(message)) },
  });
  return {
    holder,
    access: own,
    news,
    returned,
    /** Delivers pending messages in both directions. */
    deliver() {
      for (const message of news.splice(0)) own.onMessage(message);
      for (const message of returned.splice(0)) holder.onReturned(message);
    },
    /** A proxied request: the main thread knows the key, or not. */
    ask(token: string) {
      const principal = access.authenticate(token, HERE);
      if (principal !== null) holder.grant(token, principal);
    },
  };
}
