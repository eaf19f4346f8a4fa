/**
 * What an edge process and its successor tell each other: the variable with which the successor is
 * started, and the messages on the channel that Node opens to a child process. The two may be of
 * different versions; a message of an unknown kind is ignored.
 */

import type { ReceiptMessage } from "../../edge/handover-receipts.ts";
import type { QuicSockets } from "../../native-ingress/ingress-threads.ts";

/** Names the variable; its value is a `HandoverNote` as JSON. */
export const HANDOVER_VARIABLE = "TOUCHDOWN_HANDOVER";

export interface HandoverNote {
  /** `http.listen` of the predecessor. */
  readonly listen: string;
  /** The port that it is bound to. */
  readonly port: number;
  /** The file descriptor of the listening socket; null: the successor opens its own. */
  readonly socket: number | null;
  /** The predecessor's sockets for QUIC clients; null: it serves none. */
  readonly quicSockets: QuicSockets | null;
  /** When the successor was started. */
  readonly startedUnixMs: number;
  /** The upgrades before this one. */
  readonly succeeded: number;
  readonly failed: number;
}

export type FromSuccessor =
  /** What it still needs to be ready, whenever that changes. */
  | { readonly kind: "waiting"; readonly missing: readonly string[] }
  | { readonly kind: "ready" }
  | { readonly kind: "serving" }
  /** Asks for all receipts that the predecessor knows. */
  | { readonly kind: "ask"; readonly number: number }
  | { readonly kind: "failed"; readonly reason: string };

/** `takeOver`: the successor may listen. */
export type ToSuccessor =
  | { readonly kind: "takeOver" }
  | { readonly kind: "receipts"; readonly message: ReceiptMessage };

/** null for anything else. */
export function readFromSuccessor(message: unknown): FromSuccessor | null {
  const fields = fieldsOf(message);
  switch (fields["kind"]) {
    case "waiting": {
      const { missing } = fields;
      return { kind: "waiting", missing: Array.isArray(missing) ? missing.map(String) : [] };
    }
    case "ready":
      return { kind: "ready" };
    case "serving":
      return { kind: "serving" };
    case "ask":
      return { kind: "ask", number: Number(fields["number"]) };
    case "failed":
      return { kind: "failed", reason: String(fields["reason"]) };
    default:
      return null;
  }
}

export function readToSuccessor(message: unknown): ToSuccessor | null {
  const fields = fieldsOf(message);
  if (fields["kind"] === "takeOver") return { kind: "takeOver" };
  if (fields["kind"] !== "receipts") return null;
  // Sent by an edge, over a channel that no one else has.
  return { kind: "receipts", message: fields["message"] as ReceiptMessage };
}

/** null for a text that is no note. */
export function readNote(text: string): HandoverNote | null {
  const { listen, port, socket, quicSockets, ...times } = fieldsOf(parsed(text));
  const { startedUnixMs, succeeded, failed } = times;
  if (typeof listen !== "string" || typeof port !== "number") return null;
  return {
    ...{ listen, port, socket: typeof socket === "number" ? socket : null },
    // A predecessor of a version before these fields does not say.
    quicSockets: socketsOf(quicSockets),
    startedUnixMs: typeof startedUnixMs === "number" ? startedUnixMs : Number.NaN,
    succeeded: typeof succeeded === "number" ? succeeded : 0,
    failed: typeof failed === "number" ? failed : 0,
  };
}

function socketsOf(value: unknown): QuicSockets | null {
  const { host, port, places } = fieldsOf(value);
  if (typeof host !== "string" || typeof port !== "number" || !Array.isArray(places)) return null;
  return { host, port, places: places.map(Number) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  // Any object is a record of unknown values.
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
