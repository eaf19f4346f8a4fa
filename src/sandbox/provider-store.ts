/**
 * In-memory storage of the sandbox's identity provider, bounded: when full, it evicts the oldest
 * entry. The provider itself checks expiry times.
 */

import { PROVIDER_ENTRIES_MAX } from "./limits.ts";

/** The fields by which an entry is looked up. */
interface Entry {
  readonly uid?: string | undefined;
  readonly userCode?: string | undefined;
  readonly grantId?: string | undefined;
  readonly consumed?: unknown;
  readonly [field: string]: unknown;
}

/** The storage interface that the provider requires. */
export interface ProviderAdapter {
  upsert(id: string, entry: Entry): Promise<void>;
  find(id: string): Promise<Entry | undefined>;
  findByUid(uid: string): Promise<Entry | undefined>;
  findByUserCode(code: string): Promise<Entry | undefined>;
  consume(id: string): Promise<void>;
  destroy(id: string): Promise<void>;
  revokeByGrantId(grantId: string): Promise<void>;
}

/** A factory of adapters, one per kind of entry, over one store. */
export function createProviderStore(
  entriesMax = PROVIDER_ENTRIES_MAX,
): (kind: string) => ProviderAdapter {
  const entries = new Map<string, Entry>();

  function find(matches: (payload: Entry, key: string) => boolean) {
    for (const [key, payload] of entries) if (matches(payload, key)) return payload;
    return undefined;
  }

  return (kind) => {
    const keyOf = (id: string): string => `${kind}:${id}`;
    const ofKind = (key: string): boolean => key.startsWith(`${kind}:`);
    return {
      async upsert(id, payload) {
        entries.delete(keyOf(id));
        entries.set(keyOf(id), payload);
        for (const oldest of entries.keys()) {
          if (entries.size <= entriesMax) break;
          entries.delete(oldest);
        }
      },
      find: async (id) => entries.get(keyOf(id)),
      findByUid: async (uid) => find((payload, key) => ofKind(key) && payload.uid === uid),
      findByUserCode: async (code) =>
        find((payload, key) => ofKind(key) && payload.userCode === code),
      async consume(id) {
        const payload = entries.get(keyOf(id));
        // The provider checks whether it is set, not its value.
        if (payload !== undefined) entries.set(keyOf(id), { ...payload, consumed: 1 });
      },
      async destroy(id) {
        entries.delete(keyOf(id));
      },
      async revokeByGrantId(grantId) {
        for (const [key, payload] of entries) {
          if (payload.grantId === grantId) entries.delete(key);
        }
      },
    };
  };
}
