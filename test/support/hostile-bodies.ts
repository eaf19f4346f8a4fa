/**
 * Bodies to break a server with: noise, damaged transactions, damaged JSON, and JSON that is valid
 * and unreasonable. The same seed makes the same bodies in the same order.
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

interface Dice {
  /** 0 to below `count`. */
  int(count: number): number;
  pick<T>(from: readonly [T, ...T[]]): T;
  bytes(size: number): Buffer;
}

export function createHostileBodies(seed: number, good: () => BuiltTransaction): HostileBodies {
  const dice = createDice(seed);
  // Few originals, so that making them does not take longer than sending what became of them.
  const originals = Array.from({ length: 8 }, () => good().bytes);
  const original = (): Buffer => Buffer.from(originals[dice.int(originals.length)] ?? []);

  function binary(): HostileBody {
    const kind = dice.pick(["noise", "damaged", "damaged", "damaged", "pieced", "huge"]);
    if (kind === "noise") return { kind, bytes: noise(dice) };
    if (kind === "damaged") return { kind, bytes: damaged(dice, original()) };
    if (kind === "pieced") return { kind, bytes: pieced(dice, original(), original()) };
    // One in a few is above what is taken at all.
    return { kind, bytes: dice.bytes(12_000 + dice.int(8_000)) };
  }

  function text(): HostileBody {
    const kind = dice.pick(["wrapped", "wrapped", "odd", "deep", "batch", "cut", "binary"]);
    if (kind === "binary") return binary();
    if (kind === "deep") return { kind, bytes: deep(dice) };
    if (kind === "wrapped") return { kind, bytes: Buffer.from(wrapped(binary().bytes)) };
    if (kind === "batch") return { kind, bytes: batch(dice, () => wrapped(binary().bytes)) };
    if (kind === "odd") return { kind, bytes: Buffer.from(odd(dice)) };
    return { kind, bytes: damaged(dice, Buffer.from(wrapped(original()))) };
  }

  return { next: (json) => (json ? text() : binary()) };
}

/** A small generator of 32-bit numbers (xorshift). */
function createDice(seed: number): Dice {
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

function noise(dice: Dice): Buffer {
  const bytes = dice.bytes(dice.pick([0, 1, 2, 65, 200, 1232, 1233, 4096, 4097, dice.int(6_000)]));
  // Half of them begin like a transaction of some version.
  if (bytes.length > 0 && dice.int(2) === 0) bytes[0] = dice.pick([0, 1, 2, 12, 0x80, 0x81, 0xff]);
  return bytes;
}

/** One to four changes: a bit, a byte, a piece cut out, put in twice or overwritten. */
function damaged(dice: Dice, bytes: Buffer): Buffer {
  let result = bytes;
  for (let count = 1 + dice.int(4); count > 0; count -= 1) {
    const at = dice.int(result.length + 1);
    const size = 1 + dice.int(dice.pick([2, 40, 400]));
    switch (dice.int(6)) {
      case 0:
        if (at < result.length) result[at] = (result[at] ?? 0) ^ (1 << dice.int(8));
        break;
      case 1:
        if (at < result.length) result[at] = dice.pick([0, 1, 0x7f, 0x80, 0xff]);
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
        result = Buffer.concat([result, dice.bytes(size)]);
    }
  }
  return result;
}

function pieced(dice: Dice, one: Buffer, other: Buffer): Buffer {
  return Buffer.concat([
    one.subarray(0, dice.int(one.length)),
    other.subarray(dice.int(other.length)),
  ]);
}

function wrapped(bytes: Uint8Array): string {
  const params = [Buffer.from(bytes).toString("base64"), { encoding: "base64", maxRetries: 0 }];
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params });
}

function batch(dice: Dice, call: () => string): Buffer {
  const calls = Array.from({ length: dice.pick([0, 1, 2, 5, 16, 17, 40]) }, () =>
    dice.int(3) === 0 ? dice.pick(["1", "null", "[]", '"x"', "{}"]) : call(),
  );
  return Buffer.from(`[${calls.join(",")}]`);
}

function deep(dice: Dice): Buffer {
  const depth = dice.pick([10, 1_000, 20_000]);
  const [open, close] = dice.pick([
    ["[", "]"],
    ['{"params":', "}"],
  ]);
  const inner = dice.pick(["1", "", '"'.repeat(3)]);
  return Buffer.from(
    `${open.repeat(depth)}${inner}${dice.int(2) === 0 ? close.repeat(depth) : ""}`,
  );
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

/** A call whose every part is any odd value, with parts twice or missing. */
function odd(dice: Dice): string {
  const value = (): string => dice.pick(ODD_VALUES);
  const parts = [
    dice.int(8) === 0 ? `"jsonrpc":${value()}` : '"jsonrpc":"2.0"',
    `"id":${value()}`,
    dice.int(3) === 0 ? `"method":${value()}` : '"method":"sendTransaction"',
    `"params":${dice.int(2) === 0 ? value() : `[${value()},${value()}]`}`,
    `${value()}:1`,
    `"id":${value()}`,
  ];
  const kept = parts.filter(() => dice.int(6) > 0);
  return `${dice.pick(["", "\ufeff", " \n"])}{${kept.join(",")}}`;
}
