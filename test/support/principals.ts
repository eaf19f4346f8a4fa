/**
 * Principals of keys and request addresses, for tests of ingress.
 */

import type {
  ClientAddress,
  KeyPolicy,
  Principal,
  RatePlan,
} from "../../src/limits/access-control.ts";

/** The principal of an unrestricted key, unless configured otherwise. */
export function testPrincipal(
  account: string,
  plan: RatePlan,
  policy: Partial<KeyPolicy> | null = null,
): Principal {
  return {
    keyId: "0".repeat(32),
    account,
    plan,
    policy:
      policy === null ? null : { expiresUnixMs: null, networks: null, limit: null, ...policy },
  };
}

export function from(address: string): ClientAddress {
  return { remoteAddress: () => address };
}

export const HERE = from("127.0.0.1");
