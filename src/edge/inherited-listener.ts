/** What a process gets of the listeners of the one that it replaces. */

import { SetupError } from "../core/errors.ts";
import type { QuicSockets } from "../native-ingress/ingress-threads.ts";

/** As the process that is replaced gives it. */
export interface InheritedListener {
  /** The file descriptor of the listening socket; null: it cannot be passed on. */
  readonly socket: number | null;
  readonly port: number;
  /** Its sockets for QUIC clients; null: it serves none. */
  readonly quicSockets: QuicSockets | null;
}

/** The same, as the successor sees it. */
export interface PredecessorListener extends Pick<InheritedListener, "socket" | "port"> {
  /** `QuicSockets.places` where the successor listens for QUIC clients; empty: none are there. */
  readonly quicPlaces: readonly number[];
  /** How many processes there were before the successor, one after the other. */
  readonly processNumber: number;
}

/** Why a process cannot listen on the socket of the one that it is to replace. */
export const OTHER_SERVER =
  "the listening socket of the running process cannot be used: both need the native engine and " +
  "http.threads of 1 or more, or both need neither; restart instead";

/** @throws SetupError where one of two processes has ingress threads and the other has none */
export function requireSameServer(
  { socket }: Pick<PredecessorListener, "socket">,
  hasIngressThreads: boolean,
): void {
  if ((socket !== null) !== hasIngressThreads) throw new SetupError(OTHER_SERVER);
}
