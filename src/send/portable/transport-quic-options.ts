/**
 * Options of the portable engine, in a file of their own so that readers of the options do not load
 * its binary.
 */

export interface QuicTransportOptions {
  /** Local addresses; null: that family is not used. */
  readonly bindIpv4: string | null;
  readonly bindIpv6: string | null;
  /** Local ports; 0: any free one. */
  readonly portIpv4: number;
  readonly portIpv6: number;
  /** Largest UDP payload sent, 1200 to 1452 bytes. */
  readonly datagramBytesMax: number;
  /** Idle time after which a connection ends; the lower value of both sides applies. */
  readonly idleTimeoutMs: number;
}

export const ANY_IPV6 = "::";

export const QUIC_TRANSPORT_DEFAULTS: QuicTransportOptions = {
  bindIpv4: "0.0.0.0",
  bindIpv6: ANY_IPV6,
  portIpv4: 0,
  portIpv6: 0,
  datagramBytesMax: 1350,
  idleTimeoutMs: 10_000,
};
