/**
 * Maps the process's signals to the life cycle of a running service:
 *
 *   starting ─SIGTERM, SIGINT─▶ exit 0 immediately
 *      │ started
 *   running ─SIGTERM, SIGINT─▶ draining ─grace over─▶ stopping ─work finished─▶ exit 0
 *      │                          └──────second signal──┴──▶ exit 1 immediately
 *      ├─SIGHUP: keys, identity, certificate are read again, at any time before the end; one that
 *      │ arrives during the start waits for its end instead of ending the process
 *      └─SIGUSR2: a successor is started (handover/successor.ts); once that serves, the process
 *        stops when nothing is in hand any more, or at a signal, without a grace period
 *
 * While draining, `/readyz` already returns 503 and the service still accepts work, so that a load
 * balancer can redirect first. Near the end of the grace period each response closes its
 * connection, so that clients that stayed open new ones instead of losing a request. Stopping is
 * bounded: if pending work does not end in time, the exit code is 1.
 *
 * Decision: docs/decisions/0040-bounded-shutdown.md
 */

import type { Clock, Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { ExitCode, Io, Signal, SignalSource } from "./command.ts";
import { LAST_RESPONSES_MS_MAX, STOP_MS_MAX } from "./limits.ts";

/** The part of a running service that signals act on. */
export interface Stoppable {
  /** Switches `/readyz` to 503; the service still accepts work. */
  drain(): void;
  /** Closes each connection of a client with its next response; absent: the service cannot. */
  disableKeepAlive?(): void;
  /** Rejects new work, finishes pending work, closes everything. */
  stop(): Promise<unknown>;
}

export interface SignalOptions {
  readonly io: Pick<Io, "err" | "signals"> & { readonly clock: Clock };
  readonly service: Stoppable;
  /** How long the service accepts work after the first signal. */
  readonly graceMs: number;
  /**
   * Functions to call on SIGHUP, each regardless of the others' results; null keeps the signal's
   * default. A function that throws or rejects is reported.
   */
  readonly reload: readonly (() => unknown)[] | null;
  /** The hand-over to a successor; absent: the service has none. */
  readonly upgrade?: Upgradable;
}

/** The hand-over of a service to another process. */
export interface Upgradable {
  /** Starts a successor. */
  start(): void;
  /** The service is about to stop: ends a successor that does not serve yet. */
  abort(): void;
  /** Whether a successor serves. */
  readonly isRetiring: boolean;
  /** Resolves when a successor serves and nothing is in hand here any more. */
  readonly finished: Promise<void>;
}

export interface Started<S> {
  readonly service: S;
  /** Passes signals that arrived during the start to the first listener. */
  readonly signals: SignalSource;
}

/**
 * Starts a service. Null if a signal stopped it meanwhile: nothing is pending yet, so the caller
 * need not wait for it. Rejects with what `start` rejects with. `missed`: signals that may have
 * gone to another process meanwhile; they are passed on as if they had arrived here.
 */
export async function whileStarting<S>(
  source: SignalSource,
  start: () => Promise<S>,
  missed: readonly Signal[] = [],
): Promise<Started<S> | null> {
  const holds = new Map<Signal, () => void>();
  /** Signals that arrived and are passed on later. */
  const due = new Set<Signal>(missed);
  const hold = (signal: Signal, act: () => void): void => {
    holds.set(signal, act);
    source.on(signal, act);
  };
  const release = (signal: Signal): void => {
    const act = holds.get(signal);
    if (act !== undefined) source.off(signal, act);
    holds.delete(signal);
  };
  const toldToStop = new Promise<null>((resolve) => {
    hold("SIGTERM", () => resolve(null));
    hold("SIGINT", () => resolve(null));
    for (const signal of ["SIGHUP", "SIGUSR2"] as const) hold(signal, () => due.add(signal));
  });
  const signals: SignalSource = {
    on(signal, act) {
      source.on(signal, act);
      // Only after the other listener is attached: without one the signal would end the process.
      release(signal);
      if (due.delete(signal)) act();
    },
    off: (signal, act) => source.off(signal, act),
  };
  let service: S | null = null;
  try {
    service = await Promise.race([start(), toldToStop]);
  } finally {
    if (service === null) for (const signal of [...holds.keys()]) release(signal);
  }
  return service === null ? null : { service, signals };
}

/** Resolves with the exit code once the service has stopped, or must not be waited for. */
export function untilStopped(options: SignalOptions): Promise<ExitCode> {
  const { io, service, graceMs, upgrade } = options;
  return new Promise((resolve) => {
    let timer: Timer | null = null;
    let state: "running" | "draining" | "ended" = "running";
    let hasStopSignal = false;

    const end = (code: ExitCode): void => {
      if (state === "ended") return;
      state = "ended";
      timer?.cancel();
      for (const [signal, act] of handlers) io.signals.off(signal, act);
      resolve(code);
    };
    const stop = (): void => {
      timer = io.clock.after(STOP_MS_MAX, () => {
        io.err(`pending work did not end within ${STOP_MS_MAX} ms, stopping without it`);
        end(1);
      });
      service.stop().then(
        () => end(0),
        (error: unknown) => {
          io.err(`stopping failed: ${messageOf(error)}`);
          end(1);
        },
      );
    };
    const onStop = (): void => {
      if (hasStopSignal) {
        io.err("second signal: stopping immediately");
        end(1);
        return;
      }
      hasStopSignal = true;
      // It stops already, because its successor serves.
      if (state === "draining") return;
      state = "draining";
      upgrade?.abort();
      service.drain();
      if (graceMs === 0 || upgrade?.isRetiring === true) {
        stop();
        return;
      }
      const lastMs = Math.min(LAST_RESPONSES_MS_MAX, graceMs / 2);
      timer = io.clock.after(graceMs - lastMs, () => {
        service.disableKeepAlive?.();
        timer = io.clock.after(lastMs, stop);
      });
    };
    const handlers: (readonly [Signal, () => void])[] = [
      ["SIGTERM", onStop],
      ["SIGINT", onStop],
    ];
    const { reload } = options;
    const reloadAll = (): void => {
      for (const each of reload ?? []) void reloadSafely(each, io);
    };
    if (reload !== null) handlers.push(["SIGHUP", reloadAll]);
    if (upgrade !== undefined) {
      const start = (): void => {
        if (state === "running") upgrade.start();
        else io.err("SIGUSR2: this process is stopping, it starts no successor");
      };
      handlers.push(["SIGUSR2", start]);
      void upgrade.finished.then(() => {
        if (state !== "running") return;
        state = "draining";
        stop();
      });
    }
    for (const [signal, act] of handlers) io.signals.on(signal, act);
  });
}

async function reloadSafely(reload: () => unknown, io: Pick<Io, "err">): Promise<void> {
  try {
    await reload();
  } catch (error) {
    io.err(`not read again, what was read before stays: ${messageOf(error)}`);
  }
}
