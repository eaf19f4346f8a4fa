/**
 * Bodies to attack a server with: noise, damaged transactions, damaged JSON, and valid but
 * unreasonable JSON. The same seed produces the same bodies in the same order.
 */

import type { BuiltTransaction } from "./transactions.ts";

export interface HostileBody {
  /** How it was made. */
  readonly kind: string;
  readonly bytes: Uint8Array;
}

export interface HostileBodies {
  next(json: boolean): HostileBody;
}

interface Rng {
  /** 0 to below `count`. */
  int(count: number): number;
  pick<T>(from: readonly [T, ...T[]]): T;
  bytes(size: number): Buffer;
}

export function createHostileBodies(seed: number, good: () => BuiltTransaction): HostileBodies {
  const rng = createRng(seed);
  // Few originals, so that creating them does not take longer than sending the mutations.
  const originals = Array.from({ length: 8 }, () => good().bytes);
  const original = (): Buffer => Buffer.from(originals[rng.int(originals.length)] ?? []);

  function binary(): HostileBody {
    const kind = rng.pick(["noise", "damaged", "damaged", "damaged", "pieced", "huge"]);
    if (kind === "noise") return { kind, bytes: noise(rng) };
    if (kind === "damaged") return { kind, bytes: damaged(rng, original()) };
    if (kind === "pieced") return { kind, bytes: pieced(rng, original(), original()) };
    // A fraction of them exceeds the maximum body size.
    return { kind, bytes: rng.bytes(12_000 + rng.int(8_000)) };
  }

  function text(): HostileBody {
    const kind = rng.pick(["wrapped", "wrapped", "odd", "deep", "batch", "cut", "binary"]);
    if (kind === "binary") return binary();
    if (kind === "deep") return { kind, bytes: deep(rng) };
    if (kind === "wrapped") return { kind, bytes: Buffer.from(wrapped(binary().bytes)) };
    if (kind === "batch") return { kind, bytes: batch(rng, () => wrapped(binary().bytes)) };
    if (kind === "odd") return { kind, bytes: Buffer.from(odd(rng)) };
    return { kind, bytes: damaged(rng, Buffer.from(wrapped(original()))) };
  }

  return { next: (json) => (json ? text() : binary()) };
}

/** A small generator of 32-bit numbers (xorshift). */
function createRng(seed: number): Rng {
  let state = seed | 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  const int = (count: number): number => next() % count;
  return {
    int,
    pick: (from) => from[int(from.length)] ?? from[0],
    bytes(size) {
      const bytes = Buffer.alloc(size);
      for (let index = 0; index < size; index += 1) bytes[index] = next();
      return bytes;
    },
  };
}

function noise(rng: Rng): Buffer {
  const bytes = rng.bytes(rng.pick([0, 1, 2, 65, 200, 1232, 1233, 4096, 4097, rng.int(6_000)]));
  // Half of them begin like a transaction of some version.
  if (bytes.length > 0 && rng.int(2) === 0) bytes[0] = rng.pick([0, 1, 2, 12, 0x80, 0x81, 0xff]);
  return bytes;
}

/** One to four changes: a bit, a byte, a piece removed, duplicated or overwritten. */
function damaged(rng: Rng, bytes: Buffer): Buffer {
  let result = bytes;
  for (let count = 1 + rng.int(4); count > 0; count -= 1) {
    const at = rng.int(result.length + 1);
    const size = 1 + rng.int(rng.pick([2, 40, 400]));
    switch (rng.int(6)) {
      case 0:
        if (at < result.length) result[at] = (result[at] ?? 0) ^ (1 << rng.int(8));
        break;
      case 1:
        if (at < result.length) result[at] = rng.pick([0, 1, 0x7f, 0x80, 0xff]);
        break;
      case 2:
        result = result.subarray(0, at);
        break;
      case 3:
        result = Buffer.concat([result.subarray(0, at), result.subarray(at + size)]);
        break;
      case 4:
        result = Buffer.concat([result.subarray(0, at), result.subarray(Math.max(0, at - size))]);
        break;
      default:
        result = Buffer.concat([result, rng.bytes(size)]);
    }
  }
  return result;
}

function pieced(rng: Rng, one: Buffer, other: Buffer): Buffer {
  return Buffer.concat([
    one.subarray(0, rng.int(one.length)),
    other.subarray(rng.int(other.length)),
  ]);
}

function wrapped(bytes: Uint8Array): string {
  const params = [Buffer.from(bytes).toString("base64"), { encoding: "base64", maxRetries: 0 }];
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params });
}

function batch(rng: Rng, call: () => string): Buffer {
  const calls = Array.from({ length: rng.pick([0, 1, 2, 5, 16, 17, 40]) }, () =>
    rng.int(3) === 0 ? rng.pick(["1", "null", "[]", '"x"', "{}"]) : call(),
  );
  return Buffer.from(`[${calls.join(",")}]`);
}

function deep(rng: Rng): Buffer {
  const depth = rng.pick([10, 1_000, 20_000]);
  const [open, close] = rng.pick([
    ["[", "]"],
    ['{"params":', "}"],
  ]);
  const inner = rng.pick(["1", "", '"'.repeat(3)]);
  return Buffer.from(`${open.repeat(depth)}${inner}${rng.int(2) === 0 ? close.repeat(depth) : ""}`);
}

const ODD_VALUES = [
  "null",
  "true",
  "-0",
  "1e999",
  "123456789012345678901234567890",
  '""',
  '"\\ud800"',
  '"__proto__"',
  "[]",
  "{}",
  "[[[]]]",
  '{"__proto__":{"encoding":"base58"}}',
  '{"encoding":"base58"}',
  '{"encoding":7,"maxRetries":-1}',
  '{"maxRetries":1e308}',
  '"AQ=="',
  '"AQ"',
  '"1111111111111111111111111111111111111111111111"',
  `"${"z".repeat(3_000)}"`,
  `"${"A".repeat(9_000)}"`,
] as const;

/** A call whose every part is an arbitrary value, with duplicate or missing parts. */
function odd(rng: Rng): string {
  const value = (): string => rng.pick(ODD_VALUES);
  const parts = [
    rng.int(8) === 0 ? `"jsonrpc":${value()}` : '"jsonrpc":"2.0"',
    `"id":${value()}`,
    rng.int(3) === 0 ? `"method":${value()}` : '"method":"sendTransaction"',
    `"params":${rng.int(2) === 0 ? value() : `[${value()},${value()}]`}`,
    `${value()}:1`,
    `"id":${value()}`,
  ];
  const kept = parts.filter(() => rng.int(6) > 0);
  return `${rng.pick(["", "\ufeff", " \n"])}{${kept.join(",")}}`;
}
