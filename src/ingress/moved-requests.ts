/**
 * The main thread's end of one front's line: requests that were moved here are given to the HTTP
 * server as if they had come in here, each with a wire that leads back.
 */

import { Outbox } from "../core/port.ts";
import type { OwnerKnown } from "./admission.ts";
import type { MainPort, MovedRequest, MoveReason, ToFront, ToMain } from "./moved.ts";
import { RemoteWire } from "./remote-wire.ts";

export const MOVE_REASONS = [
  "key",
  "limit",
  "leaders",
  "books",
  "other",
] as const satisfies readonly MoveReason[];

/** How many were moved, by why. */
export function newMoves(): Record<MoveReason, number> {
  return { key: 0, limit: 0, leaders: 0, books: 0, other: 0 };
}

export interface MovedRequestsDeps {
  readonly port: MainPort;
  readonly http: MovedTaker;
  /** Told whose key a moved submission carries, each time, before it is charged; for passes. */
  readonly known?: OwnerKnown;
}

/** What is asked of the HTTP server. */
export interface MovedTaker {
  takeMoved(request: MovedRequest, wire: RemoteWire, known: OwnerKnown | null): void;
}

export interface MovedRequests {
  /** Requests of that front that have no answer yet. */
  readonly open: number;
  /** The front is gone, and its clients with it. */
  abandon(): void;
}

export function createMovedRequests({ port, http, known }: MovedRequestsDeps): MovedRequests {
  const wires = new Map<number, RemoteWire>();
  const outbox = new Outbox<ToFront>(port);

  function take(request: MovedRequest): void {
    const { number } = request;
    const wire = new RemoteWire(request, outbox, () => void wires.delete(number));
    wires.set(number, wire);
    http.takeMoved(request, wire, known ?? null);
    wire.begin();
  }

  function abort(number: number): void {
    const wire = wires.get(number);
    wires.delete(number);
    wire?.abort();
  }

  function heed(told: ToMain): void {
    if (told.kind === "request") take(told);
    else if (told.kind === "body") wires.get(told.number)?.deliver(told.body);
    else if (told.kind === "gone") abort(told.number);
    else if (told.kind === "stalled") wires.get(told.number)?.stall();
    else wires.get(told.number)?.taken(told.chars);
  }

  port.onMessage((all) => {
    for (const told of all) heed(told);
  });

  return {
    get open() {
      return wires.size;
    },
    abandon() {
      for (const number of [...wires.keys()]) abort(number);
    },
  };
}
