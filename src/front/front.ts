/**
 * A front: what a thread needs to take transactions to the wire by itself, joined. Everything that
 * it shares with others is memory or a handle that it was started with.
 *
 *     http ─▶ gate (passes) ─▶ submit: seen, decode, routes, send ─▶ record ─▶ main thread
 *       └──▶ elsewhere: what it is not certain of ────────────────────────────▶ main thread
 */

import { networksOf } from "../accounts/restriction.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { type Port, portOf } from "../core/port.ts";
import { nativeDecoder } from "../decode/native-decoder.ts";
import { callReaderOf } from "../ingress/call-reader.ts";
import { createElsewhere } from "../ingress/elsewhere.ts";
import { createFrontServer } from "../ingress/http.ts";
import { createPassGate, passPlaceOf } from "../ingress/pass-gate.ts";
import { openSeen } from "../ingress/seen.ts";
import type { NativeEngine } from "../native/contract.ts";
import { signatureTextOf } from "../native/signature-text.ts";
import { createFrontSender } from "../send/front-sender.ts";
import { frontFigures } from "./figures.ts";
import type { FromThread, FrontTask, ToThread } from "./messages.ts";
import { createRecordWriter } from "./records.ts";
import { createFrontSubmit } from "./submit.ts";
import { createTeller } from "./teller.ts";
import { createTurnedAway } from "./turned-away.ts";

export interface FrontDeps {
  readonly clock: Clock;
  readonly native: NativeEngine;
  /** To the main thread. */
  readonly port: Port<FromThread, ToThread>;
  /** The front has stopped, and nothing is left to be told. */
  readonly onStopped: () => void;
  /** It was told to end at once. */
  readonly onEnd: () => void;
}

export interface Front {
  /** Closes every connection at once, whatever is in hand. */
  close(): void;
}

/** Takes connections from the main thread as soon as that has heard of it, until told to stop. */
export function startFront(deps: FrontDeps, task: FrontTask): Front {
  const { clock, native, port } = deps;
  const gate = createPassGate({ clock, memory: task.passes, networksOf, port });
  const records = createRecordWriter(task.records);
  const onRecord = createTeller(clock, records, task.bell);
  const sender = createFrontSender({ native, clock, onHeldUp: () => onRecord(true) }, task.routes);
  const submit = createFrontSubmit({
    clock,
    seen: openSeen(task.seen),
    decode: nativeDecoder(native, task.decoder).decode,
    sender,
    records,
    placeOf: passPlaceOf,
    nameOf: signatureTextOf(native),
    onRecord,
  });
  const http = createFrontServer(
    {
      clock,
      log: logTo(port),
      // The main thread learns all of these from the records.
      latency: null,
      refused: createTurnedAway({ records, placeOf: passPlaceOf, onRecord }),
      figures: frontFigures(task.figures),
      gate,
      submit,
      calls: callReaderOf(native),
      elsewhere: createElsewhere(portOf(task.moved), (isLong) =>
        sender.heed(isLong ? Number.POSITIVE_INFINITY : clock.nowNs()),
      ),
    },
    task.http,
  );

  async function stop(): Promise<void> {
    await http.stop();
    port.post({ kind: "stopped" });
    task.moved.close();
    deps.onStopped();
  }

  port.onMessage((message) => {
    if (message.kind === "drain") http.drain();
    else if (message.kind === "stop") void stop();
    else if (message.kind === "end") deps.onEnd();
    else gate.take(message);
  });
  port.post({ kind: "up", descriptor: http.descriptor });
  return { close: () => http.close() };
}

/** A front has no log of its own: lines of two threads would run into each other. */
function logTo(port: Port<FromThread, ToThread>): Log {
  const tell = (fields: object, message: string): void => {
    const error = "err" in fields ? fields.err : fields;
    const text = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error);
    port.post({ kind: "fault", error: text, message });
  };
  return { info() {}, warn: tell, error: tell };
}
