/**
 * A fake environment of a command: it collects lines and emits signals on request.
 */

import { EventEmitter } from "node:events";
import type { Io, Signal } from "../../src/cli/command.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";

export interface FakeIo extends Io {
  readonly outLines: string[];
  readonly errLines: string[];
  emit(signal: Signal): void;
  /** How many handlers wait for a signal. */
  listeners(signal: Signal): number;
}

export function createFakeIo(clock: Clock = systemClock, stdin: Uint8Array | null = null): FakeIo {
  const emitter = new EventEmitter();
  const outLines: string[] = [];
  const errLines: string[] = [];
  return {
    outLines,
    errLines,
    out: (line) => void outLines.push(line),
    err: (line) => void errLines.push(line),
    async readStdin() {
      if (stdin === null) throw new Error("this test gives no standard input");
      return stdin;
    },
    readLine: async () => null,
    isTerminal: false,
    clock,
    signals: emitter,
    emit: (signal) => void emitter.emit(signal),
    listeners: (signal) => emitter.listenerCount(signal),
  };
}
