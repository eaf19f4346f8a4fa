/** Owners of keys and where requests come from, for tests of ingress. */

import type { KeyOwner, KeyRestriction, Origin, RatePlan } from "../../src/limits/gate.ts";

/** The owner of an unrestricted key, unless told otherwise. */
export function keyOwner(
  account: string,
  plan: RatePlan,
  restriction: Partial<KeyRestriction> | null = null,
): KeyOwner {
  return {
    keyId: "0".repeat(32),
    account,
    plan,
    restriction:
      restriction === null
        ? null
        : { expiresUnixMs: null, networks: null, limit: null, ...restriction },
  };
}

export function from(address: string): Origin {
  return { remoteAddress: () => address };
}

export const HERE = from("127.0.0.1");
