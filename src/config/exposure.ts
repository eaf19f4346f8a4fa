/** Whether others than the operator may reach an admin listener, which has no login. */

import { BlockList, isIP } from "node:net";
import { formatListen, type ListenAddress } from "./value-types.ts";

/**
 * The warning for an address that is neither of this machine alone nor of a private network; null
 * for those, and for a host name.
 */
export function exposureWarning(listen: ListenAddress): string | null {
  const version = isIP(listen.host);
  if (version === 0 || PRIVATE.check(listen.host, version === 4 ? "ipv4" : "ipv6")) return null;
  const isAny = listen.host === "0.0.0.0" || listen.host === "::";
  const what = isAny ? "every address of this machine" : "public";
  return (
    `admin.listen: ${formatListen(listen)} is ${what}, and the admin listener has no login: ` +
    "everyone whom no firewall keeps out can read metrics and what accounts sent there"
  );
}

/** Loopback, private and link-local networks: RFC 1122, 1918, 3927, 4193, 4291 and 6598. */
const PRIVATE = privateNetworks();

function privateNetworks(): BlockList {
  const list = new BlockList();
  for (const [network, bits] of [
    ["127.0.0.0", 8],
    ["10.0.0.0", 8],
    ["172.16.0.0", 12],
    ["192.168.0.0", 16],
    ["169.254.0.0", 16],
    ["100.64.0.0", 10],
  ] as const) {
    list.addSubnet(network, bits, "ipv4");
  }
  list.addAddress("::1", "ipv6");
  list.addSubnet("fc00::", 7, "ipv6");
  list.addSubnet("fe80::", 10, "ipv6");
  return list;
}
