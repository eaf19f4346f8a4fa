/**
 * Parses and formats leader addresses. Pure. Only literal IP addresses: gossip never contains host
 * names, and a DNS lookup would put a resolver into the path of a transaction.
 */

import { BlockList, isIPv4, isIPv6, SocketAddress as NodeSocketAddress } from "node:net";

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
  readonly family: 4 | 6;
}

/**
 * Addresses that do not identify one host: 0.0.0.0/8, multicast and broadcast addresses, and
 * link-local IPv6 addresses, which need an interface. RFC 1122 section 3.2.1.3, RFC 4291 sections
 * 2.5.2, 2.5.6 and 2.7, RFC 5771. The list finds IPv4-mapped addresses too. The native engine has
 * the same rule: `is_host` of `quic/engine.rs`.
 */
const NO_HOSTS = new BlockList();
NO_HOSTS.addSubnet("0.0.0.0", 8);
NO_HOSTS.addSubnet("224.0.0.0", 4);
NO_HOSTS.addAddress("255.255.255.255");
NO_HOSTS.addAddress("::", "ipv6");
NO_HOSTS.addSubnet("ff00::", 8, "ipv6");
NO_HOSTS.addSubnet("fe80::", 10, "ipv6");

/** Parses "ip:port" or "[ipv6]:port"; null when it is neither, or not a unicast host address. */
export function parseAddress(text: string): SocketAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})$/.exec(text);
  if (match === null) return null;
  const [, six, four, digits] = match;
  const port = Number(digits);
  if (port > 65_535) return null;
  if (six !== undefined && isIPv6(six)) {
    // Normalized to the form in which the system reports the source of a datagram.
    const { address } = new NodeSocketAddress({ address: six, family: "ipv6" });
    return hosts({ host: address, port, family: 6 });
  }
  if (four !== undefined && isIPv4(four)) return hosts({ host: four, port, family: 4 });
  return null;
}

function hosts(address: SocketAddress): SocketAddress | null {
  return NO_HOSTS.check(address.host, `ipv${address.family}`) ? null : address;
}

/** The inverse of `parseAddress`. */
export function formatAddress(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * The TLS server name, "{ip}.{port}.sol" as Anza's clients use, so that tokens and sessions are
 * cached per server. A name cannot contain colons: an IPv6 address has dashes instead, between two
 * letters, because a label must not begin or end with a dash.
 */
export function serverNameOf(address: SocketAddress): string {
  const host = address.family === 6 ? `x${address.host.replaceAll(":", "-")}x` : address.host;
  return `${host}.${address.port}.sol`;
}
