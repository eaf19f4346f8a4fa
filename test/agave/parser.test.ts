import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { reasonOf } from "../../src/core/decode-errors.ts";
import type { ValidationResult } from "../../src/core/flow.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import { createNativeDecoder } from "../../src/decode/native-decoder.ts";
import { native } from "../native/addon.ts";
import { generated, mutated } from "../support/generated.ts";
import { createRng } from "../support/rng.ts";
import { tipAccount } from "../support/validations.ts";
import { leaderProgram } from "./build.ts";

const crate = fileURLToPath(new URL("./parser", import.meta.url));
const release = dirname(leaderProgram());

beforeAll(() => {
  const build = spawnSync("cargo", ["build", "--release", "--locked"], {
    cwd: crate,
    env: { ...process.env, CARGO_TARGET_DIR: dirname(release) },
    stdio: "inherit",
  });
  expect(build.status).toBe(0);
});

/** The result of the network's parser for each: the priority fee, or the rejection reason. */
function opinions(transactions: readonly Uint8Array[]): readonly string[] {
  const input = transactions.map((bytes) => Buffer.from(bytes).toString("hex")).join("\n");
  const run = spawnSync(join(release, "agave-parser"), {
    input: `${input}\n`,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  return run.stdout.trimEnd().split("\n");
}

/** The parser accepts a missing tip and a bad signature. */
function isSound(validation: ValidationResult): boolean {
  return validation.kind === "accepted" || reasonOf(validation.errorCode) === "tip_missing";
}

const options = {
  tipAccounts: [tipAccount.publicKey],
  lamportsMin: 1,
  verify: false,
  keyCacheSize: 0,
};
const engines = [
  { name: "portable", decoder: createDecoder(options) },
  ...(native === null ? [] : [{ name: "native", decoder: createNativeDecoder(native, options) }]),
];

describe.each(engines)("the $name decoder and the network's parser", ({ decoder }) => {
  it("agree on ten thousand generated transactions and a hundred thousand mutated ones", () => {
    const rng = createRng(42);
    const transactions: Uint8Array[] = [];
    for (let i = 0; i < 10_000; i += 1) {
      const bytes = generated(rng, options.tipAccounts);
      transactions.push(bytes);
      for (let j = 0; j < 10; j += 1) {
        transactions.push(mutated(rng, bytes, transactions.at(-11) ?? bytes));
      }
    }
    const results = opinions(transactions);
    expect(results).toHaveLength(transactions.length);
    let sound = 0;
    for (const [i, bytes] of transactions.entries()) {
      const validation = decoder.decode(bytes);
      const [outcome, fee] = (results[i] ?? "").split(" ");
      const hex = Buffer.from(bytes).toString("hex");
      expect(isSound(validation) ? "accepted" : "refused", `${results[i]} for ${hex}`).toBe(
        outcome,
      );
      if (validation.kind !== "accepted") continue;
      sound += 1;
      const clamped = Math.min(Number(fee), Number.MAX_SAFE_INTEGER);
      expect(validation.priorityFeeLamports, hex).toBe(clamped);
    }
    expect(sound).toBeGreaterThan(5_000);
  });
});
