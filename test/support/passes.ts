/** Passes over a real key table, and the gates of threads that get them, on this thread. */

import { createSharedLimits, type LimitStore } from "../../src/accounts/global-limits/sync.ts";
import type { KeyRow, Plan } from "../../src/accounts/keys/key.ts";
import { tokenSha256 } from "../../src/accounts/keys/keys-file.ts";
import { networksOf } from "../../src/accounts/keys/restriction.ts";
import { createKeyTable } from "../../src/accounts/keys/table.ts";
import type { Clock } from "../../src/core/clock.ts";
import { createGate } from "../../src/limits/gate.ts";
import { SharedHolds } from "../../src/limits/global-delegation.ts";
import { SharedCells } from "../../src/limits/global-state.ts";
import type { PassNews, PassReturned } from "../../src/limits/key-cache-entry.ts";
import { createHeldLimits, createPasses } from "../../src/limits/key-cache-sync.ts";
import { LimitCells, passMarks, passMemory } from "../../src/limits/shared-state.ts";
import { createFakeClock } from "./fake-clock.ts";
import { HERE } from "./owners.ts";
import { createPassGate } from "./pass-gate.ts";
import { silent } from "./postgres.ts";

export const PLAN: Plan = { name: "P", ratePerSecond: 1, burst: 3, shared: false };

/** A key of sixteen characters or more, and what narrows it. */
export function keyRow(
  token: string,
  account = "a",
  narrowed: Partial<KeyRow> & { readonly [K in "limit"]?: Plan } = {},
): KeyRow {
  const { limit, ...rest } = narrowed;
  const restriction = limit === undefined ? null : { expiresUnixMs: null, networks: null, limit };
  const sha256 = tokenSha256(token);
  const keyId = sha256.toString("hex", 0, 16);
  return { sha256, keyId, account, plan: PLAN, label: null, restriction, ...rest };
}

/** The main thread: keys, its gate and the passes; limits are shared where there is a store. */
export function passScene(rows: readonly KeyRow[] = []) {
  return passSceneOn(createFakeClock(), rows);
}

export function passSceneOn<C extends Clock>(
  clock: C,
  rows: readonly KeyRow[],
  store: LimitStore | null = null,
) {
  const keys = createKeyTable(rows);
  const memory = passMemory();
  const held = createHeldLimits(memory);
  const options = { edge: "e", edgesAtFirst: 1 };
  const sharedLimits = store && createSharedLimits({ clock, log: silent, store }, options);
  sharedLimits?.join(new SharedCells(memory));
  const shared = sharedLimits && new SharedHolds(sharedLimits);
  const gate = createGate({ clock, keys, looksMistyped: () => false, sharedLimits, held });
  const passes = createPasses({ clock, keys, held, shared, memory });
  const rest = { cells: new LimitCells(memory), marks: passMarks(memory) };
  return { clock, keys, memory, held, shared, sharedLimits, gate, passes, ...rest };
}

type Scene = Pick<ReturnType<typeof passScene>, "memory" | "gate" | "passes"> & {
  readonly clock: Clock;
};

/** One more thread, whose messages wait until `deliver`, copied as a port would. */
export function joinFront({ clock, memory, gate, passes }: Scene) {
  const news: PassNews[] = [];
  const returned: PassReturned[] = [];
  const holder = passes.join({ post: (message) => void news.push(structuredClone(message)) });
  const own = createPassGate({
    clock,
    memory,
    networksOf,
    port: { post: (message) => void returned.push(structuredClone(message)) },
  });
  return {
    holder,
    gate: own,
    news,
    returned,
    /** What waits arrives, there and back. */
    deliver() {
      for (const message of news.splice(0)) own.take(message);
      for (const message of returned.splice(0)) holder.take(message);
    },
    /** A relayed request: the main thread's gate knows the key, or not. */
    ask(token: string) {
      const owner = gate.find(token, HERE);
      if (owner !== null) holder.grant(token, owner);
    },
  };
}
