/**
 * Creates packets, all of one shape. Note: where V8 saw only small integers in a field of a
 * literal, it reserves room for those alone. Once other code creates a packet with the same names
 * and a large number there, V8 moves each further packet to a new shape by a call into the runtime
 * (0.4 us; `--trace-migration` shows it). So numbers start as fractions here.
 *
 * Hot path.
 */

import type { Packet } from "./flow.ts";

/** `Packet` documents the fields. */
export function createPacket(
  id: number,
  bytes: Uint8Array,
  account: string,
  receivedNs: number,
  maxRetries: number | null,
  offeredLamports: number,
): Packet {
  const packet = {
    id: 0.5,
    bytes,
    account,
    receivedNs: 0.5,
    maxRetries,
    offeredLamports: 0.5,
  };
  packet.id = id;
  packet.receivedNs = receivedNs;
  packet.offeredLamports = offeredLamports;
  return packet;
}
