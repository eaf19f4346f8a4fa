/** Why there is no verdict, or no connection. */

import type { NativeError } from "./addon.ts";
import { type Reason, reasonOf } from "./reasons.ts";

/**
 * - `size`: a transaction has 1 to 4,096 bytes.
 * - `too_many`: `pendingMax` transactions wait already.
 * - `timeout`: no verdict in time. The transaction may have been sent; the same bytes may be submitted
 *   again.
 * - `stream_refused`: the edge stopped the stream; where there are no verdicts, and `reason` says why.
 * - `no_verdicts`: `solana-tpu` has none; use `send`.
 * - `protocol`: the edge's answer is no verdict.
 * - `connection_refused`: the edge closed the connection, and `reason` says why.
 * - `not_connected`: the client gave up connecting.
 * - `closed`: the client was closed.
 */
export type ErrorKind =
  | "size"
  | "too_many"
  | "timeout"
  | "stream_refused"
  | "no_verdicts"
  | "protocol"
  | "connection_refused"
  | "not_connected"
  | "closed";

export class ClientError extends Error {
  readonly kind: ErrorKind;
  /** The edge's reason; null where it gave none. */
  readonly reason: Reason | null;

  constructor(native: NativeError) {
    super(native.message);
    this.name = "ClientError";
    // The addon names these alone.
    this.kind = native.kind as ErrorKind;
    this.reason = native.code === 0 ? null : reasonOf(native.code).reason;
  }
}
