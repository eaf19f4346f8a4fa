/** Whether others than the operator may reach an admin listener, which has no login. */

import { isIP } from "node:net";
import { networksOf } from "../runtime/networks.ts";
import { formatListen, type ListenAddress } from "./value-types.ts";

/**
 * A warning for an address that is neither of this machine alone nor of a private network; none for
 * those, and for a host name.
 */
export function exposureWarnings(listen: ListenAddress): readonly string[] {
  if (isIP(listen.host) === 0 || PRIVATE.includes(listen.host)) return [];
  const isAny = listen.host === "0.0.0.0" || listen.host === "::";
  const what = isAny ? "every address of this machine" : "public";
  return [
    `admin.listen: ${formatListen(listen)} is ${what}, and the admin listener has no login: ` +
      "everyone whom no firewall keeps out can read metrics and what accounts sent there",
  ];
}

/** Loopback, private and link-local networks: RFC 1122, 1918, 3927, 4193, 4291 and 6598. */
const PRIVATE = networksOf([
  "127.0.0.0/8",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "169.254.0.0/16",
  "100.64.0.0/10",
  "::1",
  "fc00::/7",
  "fe80::/10",
]);
