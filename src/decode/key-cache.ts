// Hot path: a cached key is found without allocation.
/**
 * Caches Ed25519 public key objects for node:crypto, because creating one costs about 5 us.
 *
 * Four-way set-associative: a hash with a secret seed selects a key's set, and within the set the
 * least recently used entry is evicted. A key is cached when it occurs a second time within a short
 * history of hashes, so that a flood of distinct keys costs no more than without a cache and does
 * not evict the keys of regular senders. The key bytes are compared in one array: a lookup creates
 * no string and no BigInt.
 */

import { createPublicKey, type KeyObject, randomInt } from "node:crypto";

const KEY_BYTES = 32;
const WAYS = 4;
/** Hashes remembered per way. */
const SEEN_PER_WAY = 4;

export interface KeyCacheCounters {
  /** Lookups served from the cache. */
  readonly keysFound: number;
  /** Key objects created. */
  readonly keysMade: number;
  /** Cached keys evicted by another. */
  readonly keysEvicted: number;
}

export interface KeyCache {
  /** The key whose 32 bytes start at `offset`; throws when OpenSSL rejects it. */
  keyAt(bytes: Uint8Array, offset: number): KeyObject;
  readonly counters: KeyCacheCounters;
}

/** A cache for `size` keys, rounded up to a power of two; 0 caches none. */
export function createKeyCache(size: number): KeyCache {
  const sets = size <= 0 ? 0 : 2 ** Math.ceil(Math.log2(Math.max(1, size / WAYS)));
  const ways = sets * WAYS;
  const kept = new Uint8Array(ways * KEY_BYTES);
  const keys: (KeyObject | null)[] = new Array(ways).fill(null);
  const usedAt = new Float64Array(ways);
  const seen = new Int32Array(ways * SEEN_PER_WAY);
  const seed = randomInt(2 ** 32);
  const counters = { keysFound: 0, keysMade: 0, keysEvicted: 0 };
  let uses = 0;

  /** The way in the set starting at `first` that holds the key, or -1. */
  function find(bytes: Uint8Array, offset: number, first: number): number {
    for (let way = first; way < first + WAYS; way += 1) {
      if (keys[way] !== null && isSame(kept, way * KEY_BYTES, bytes, offset)) return way;
    }
    return -1;
  }

  /** The least recently used way; an empty one was never used. */
  function oldest(first: number): number {
    let best = first;
    for (let way = first + 1; way < first + WAYS; way += 1) {
      if ((usedAt[way] ?? 0) < (usedAt[best] ?? 0)) best = way;
    }
    return best;
  }

  function keep(key: KeyObject, bytes: Uint8Array, offset: number, first: number): void {
    const way = oldest(first);
    if (keys[way] !== null) counters.keysEvicted += 1;
    kept.set(bytes.subarray(offset, offset + KEY_BYTES), way * KEY_BYTES);
    keys[way] = key;
    usedAt[way] = uses;
  }

  return {
    keyAt(bytes, offset) {
      if (sets === 0) {
        counters.keysMade += 1;
        return makeKey(bytes, offset);
      }
      uses += 1;
      const hash = hashAt(bytes, offset, seed);
      const first = (hash & (sets - 1)) * WAYS;
      const way = find(bytes, offset, first);
      const found = way === -1 ? null : (keys[way] ?? null);
      if (found !== null) {
        counters.keysFound += 1;
        usedAt[way] = uses;
        return found;
      }
      counters.keysMade += 1;
      const key = makeKey(bytes, offset);
      const memory = (hash >>> 8) % seen.length;
      if (seen[memory] === hash) keep(key, bytes, offset, first);
      else seen[memory] = hash;
      return key;
    },
    counters,
  };
}

/** As a JWK (RFC 8037): OpenSSL's DER reader is 13 times slower. */
function makeKey(bytes: Uint8Array, offset: number): KeyObject {
  const x = Buffer.from(bytes.subarray(offset, offset + KEY_BYTES)).toString("base64url");
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}

/** A 32-bit hash of the key. The seed prevents a sender from choosing keys that share a set. */
function hashAt(bytes: Uint8Array, offset: number, seed: number): number {
  let hash = seed | 0;
  for (let i = offset; i < offset + KEY_BYTES; i += 4) {
    const word =
      (bytes[i] ?? 0) |
      ((bytes[i + 1] ?? 0) << 8) |
      ((bytes[i + 2] ?? 0) << 16) |
      ((bytes[i + 3] ?? 0) << 24);
    // The mixing step of MurmurHash3 (public domain), 2026-11.
    const mixed = Math.imul(word, 0xcc9e2d51);
    hash ^= Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

function isSame(a: Uint8Array, aOffset: number, b: Uint8Array, bOffset: number): boolean {
  for (let i = 0; i < KEY_BYTES; i += 1) {
    if (a[aOffset + i] !== b[bOffset + i]) return false;
  }
  return true;
}
