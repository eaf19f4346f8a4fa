/** What access control costs a request: headers, key and limit. */

import assert from "node:assert/strict";
import { Bench } from "tinybench";
import { tokenSha256 } from "../../../src/accounts/keys/keys-file.ts";
import { createKeyTable } from "../../../src/accounts/keys/table.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { readFraming } from "../../../src/http/framing.ts";
import { createAccessControl } from "../../../src/limits/access-control.ts";
import { loadNative } from "../../../src/native/load.ts";
import { EngineKeys } from "../../../src/native-ingress/engine-keys.ts";

const HERE = { remoteAddress: () => "127.0.0.1" };

export async function build(): Promise<Bench> {
  const plan = { name: "Wide", ratePerSecond: 1_000_000, burst: 1_000_000, shared: false };
  const tokens = Array.from({ length: 100_000 }, (_, i) => `td_bench_${i}`.padEnd(42, "x"));
  const keys = createKeyTable(
    tokens.map((token, i) => ({
      sha256: tokenSha256(token),
      account: `account-${i % 1_000}`,
      keyId: i.toString(16).padStart(32, "0"),
      plan,
      label: null,
      policy: null,
      isDerived: false,
    })),
  );
  const access = createAccessControl({
    clock: systemClock,
    keys,
    looksMistyped: () => false,
    globalLimits: null,
  });
  const token = tokens[77_777] ?? "";
  const principal = access.authenticate(token, HERE);
  assert.equal(principal?.account, "account-777");
  assert.equal(access.authenticate(`${token}x`, HERE), null);

  const headers = [
    ["host", "edge.example"],
    ["content-type", "application/octet-stream"],
    ["api-x-token", token],
    ["user-agent", "bench"],
    ["accept", "*/*"],
    ["content-length", "300"],
  ] as const;
  const source = {
    getQuery: () => "",
    forEach(visit: (key: string, value: string) => void): void {
      for (const [key, value] of headers) visit(key, value);
    },
  };
  const { token: read, bodySize, rejection } = readFraming(source);
  assert.deepEqual({ read, bodySize, rejection }, { read: token, bodySize: 300, rejection: null });

  const sha256 = tokenSha256(token);
  const loaded = loadNative();
  assert.equal(loaded.kind, "loaded");
  const engineKeys = loaded.kind === "loaded" ? new EngineKeys(loaded.native) : null;
  if (engineKeys !== null) keys.follow(engineKeys);
  let nowNs = 1_000_000_000;
  const bench = new Bench({ name: "ingress: admission" });
  bench.add("read the headers (JavaScript's part)", () => {
    readFraming(source);
  });
  bench.add("find a key among 100,000", () => {
    access.authenticate(token, HERE);
  });
  bench.add("reject an unknown key", () => {
    access.authenticate("a-key-of-no-account-in-this-table", HERE);
  });
  bench.add("charge the limit", () => {
    nowNs += 1_000;
    if (principal !== null) access.charge(principal, nowNs);
  });
  bench.add("charge a limit shared with other threads", () => {
    nowNs += 1_000;
    engineKeys?.charge(sha256, nowNs);
  });
  return bench;
}
