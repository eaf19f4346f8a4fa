/**
 * Makes packets, all of one shape. The surprise: V8 gives a field of a literal room for small
 * integers alone where it saw no other number, and once another part makes a packet of the same
 * names with a large one there, each further packet is moved to a new shape, by a call into the
 * runtime (0.4 us; `--trace-migration` tells). So numbers begin as fractions here.
 *
 * Hot path.
 */

import type { Packet } from "./flow.ts";

/** The fields are told in `Packet`. */
export function createPacket(
  id: number,
  bytes: Uint8Array,
  account: string,
  receivedNs: number,
  maxRetries: number | null,
  priorityLamports: number,
): Packet {
  const packet = {
    id: 0.5,
    bytes,
    account,
    receivedNs: 0.5,
    maxRetries,
    priorityLamports: 0.5,
  };
  packet.id = id;
  packet.receivedNs = receivedNs;
  packet.priorityLamports = priorityLamports;
  return packet;
}
