/**
 * Validates and normalizes the options of a key: networks without host bits, a limit below the
 * plan's, an expiry in the future.
 */

import { isIP } from "node:net";
import { KEY_CIDRS_MAX, KEY_LIFE_MS_MAX } from "../limits.ts";
import type { KeyOptions, PlanRecord, Result } from "./contract.ts";
import { checkText, ok, refused } from "./records.ts";

/** Of a key that the plan alone limits. */
export const UNRESTRICTED = {
  expiresAtMs: null,
  cidrs: [],
  ratePerSecond: null,
  burst: null,
} as const satisfies Omit<KeyOptions, "label">;

/** The normalized options; a rejection names the first invalid one. */
export function checkOptions(
  options: KeyOptions,
  plan: PlanRecord,
  nowMs: number,
): Result<KeyOptions> {
  const label = checkText("the label", options.label, 0);
  if (label.kind === "refused") return label;
  const { expiresAtMs, ratePerSecond, burst } = options;
  if (expiresAtMs !== null && !(expiresAtMs > nowMs && expiresAtMs <= nowMs + KEY_LIFE_MS_MAX)) {
    return refused("invalid", "the end of a key must be to come, within 10 years");
  }
  if ((ratePerSecond === null) !== (burst === null)) {
    return refused(
      "invalid",
      "a key's own limit needs both, requests a second and a burst, or neither",
    );
  }
  if (ratePerSecond !== null && !(ratePerSecond > 0 && ratePerSecond <= plan.ratePerSecond)) {
    const bound = `above 0 and at most the plan's ${plan.ratePerSecond}`;
    return refused("invalid", `a key's own rate must be ${bound}, is ${ratePerSecond}`);
  }
  if (burst !== null && !(Number.isInteger(burst) && burst >= 1 && burst <= plan.burst)) {
    const bound = `a whole number from 1 to the plan's ${plan.burst}`;
    return refused("invalid", `a key's own burst must be ${bound}, is ${burst}`);
  }
  const cidrs = checkNetworks(options.cidrs);
  if (cidrs.kind === "refused") return cidrs;
  return ok({ label: label.value, expiresAtMs, ratePerSecond, burst, cidrs: cidrs.value });
}

function checkNetworks(given: readonly string[]): Result<readonly string[]> {
  if (given.length > KEY_CIDRS_MAX) {
    return refused("invalid", `a key may have ${KEY_CIDRS_MAX} networks, has ${given.length}`);
  }
  for (const text of given) {
    if (!isNetwork(text)) {
      const shown = JSON.stringify([...text].slice(0, SHOWN_CHARS_MAX).join(""));
      return refused("invalid", `a network must be written as 203.0.113.0/24, is ${shown}`);
    }
  }
  return ok([...new Set(given)]);
}

/** An address, or one with a prefix length; the database drops the host bits. */
function isNetwork(text: string): boolean {
  const match = NETWORK_FORM.exec(text);
  if (match === null) return false;
  const [, address = "", bits] = match;
  const family = isIP(address);
  if (family === 0) return false;
  return bits === undefined || Number(bits) <= (family === 4 ? 32 : 128);
}

/** No leading zeros: the database accepts them for IPv4 and rejects them for IPv6. */
const NETWORK_FORM = /^([0-9a-fA-F:.]{2,45})(?:\/(0|[1-9]\d{0,2}))?$/;
const SHOWN_CHARS_MAX = 48;
