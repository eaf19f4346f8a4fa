/** Sets of networks, as operators write them. */

import { BlockList, isIP } from "node:net";

export interface Networks {
  /** As given, in CIDR notation. */
  readonly ranges: readonly string[];
  /** Whether one of them contains an address in text form. */
  includes(address: string): boolean;
}

/**
 * Networks in CIDR notation; a single address stands for itself.
 *
 * @throws RangeError when one is neither; the message repeats it
 */
export function networksOf(ranges: readonly string[]): Networks {
  const list = new BlockList();
  for (const range of ranges) add(list, range);
  return {
    ranges,
    includes(address) {
      const version = isIP(address);
      return version !== 0 && list.check(address, version === 4 ? "ipv4" : "ipv6");
    },
  };
}

function add(list: BlockList, range: string): void {
  const [address = "", bits, ...rest] = range.split("/");
  const version = isIP(address);
  const bitsMax = version === 4 ? 32 : 128;
  const isPlain = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax);
  if (version === 0 || rest.length > 0 || !isPlain) {
    throw new RangeError(`${range} is no network, one like 203.0.113.0/24 or 2001:db8::/32 is`);
  }
  const family = version === 4 ? "ipv4" : "ipv6";
  list.addSubnet(address, bits === undefined ? bitsMax : Number(bits), family);
}
