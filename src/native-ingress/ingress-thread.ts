/** The main thread's handle of one ingress thread: its thread and its memory. */

import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import {
  INGRESS_THREAD_COMMANDS,
  INGRESS_THREAD_STATES,
  type NativeIngress,
  type NativeIngressThreadOptions,
  NO_PRIORITY,
} from "../native/contract.ts";
import { INGRESS_THREAD_EXIT_MS_MAX } from "./limits.ts";
import {
  type IngressThreadCounters,
  ingressThreadCounters,
  ingressThreadCountersMemory,
} from "./thread-counters.ts";

export interface IngressThreadDeps {
  readonly clock: Clock;
  readonly native: NativeIngress;
  /** The thread has died. */
  readonly onDeath: (cause: unknown) => void;
  /** Reads the engine's events. */
  readonly flushEvents: () => void;
}

export class IngressThread {
  readonly stats: IngressThreadCounters;
  readonly #deps: IngressThreadDeps;
  readonly #counters = ingressThreadCountersMemory();
  /** The engine's handle of the thread; 0: not running. */
  #handle = 0;
  /** The thread's error. */
  #failure: Error | null = null;
  #onIdle: (() => void) | null = null;
  #onEnd: ((failure: Error | null) => void) | null = null;

  constructor(deps: IngressThreadDeps) {
    this.#deps = deps;
    this.stats = ingressThreadCounters(this.#counters);
  }

  /** The engine's handle of the thread; 0 while it does not run. */
  get handle(): number {
    return this.#handle;
  }

  /** Starts the thread, which calls `wake` when its state has changed. @throws SetupError */
  start(options: NativeIngressThreadOptions, wake: () => void): void {
    const counters = new Uint8Array(this.#counters);
    const handle = this.#deps.native.ingressThreadStart(options, counters, wake);
    if (handle <= 0) throw new SetupError(startError(handle));
    this.#handle = handle;
  }

  /** Reads the thread's state. */
  onWake(): void {
    if (this.#handle === 0) return;
    const { native } = this.#deps;
    const state = native.ingressThreadState(this.#handle);
    if (state === INGRESS_THREAD_STATES.idle) this.#idle();
    else if (state === INGRESS_THREAD_STATES.exited) this.#exited(null);
    else if (state === INGRESS_THREAD_STATES.panicked)
      this.#exited(new Error("an ingress thread panicked"));
  }

  /** Sends a command; does nothing while the thread does not run. */
  command(name: keyof typeof INGRESS_THREAD_COMMANDS): void {
    if (this.#handle === 0) return;
    this.#deps.native.ingressThreadCommand(this.#handle, INGRESS_THREAD_COMMANDS[name]);
  }

  /** Accepts no more connections. Resolves when nothing is pending, or the thread has ended. */
  stop(): Promise<void> {
    if (this.#handle === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#onEnd ??= () => {};
      this.command("stop");
    });
  }

  /** Closes every connection. Resolves when the thread has ended. @throws if it failed */
  end(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#handle === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#onEnd = (failure) => (failure === null ? resolve() : reject(failure));
      this.kill();
    });
  }

  /** Closes every connection immediately, with requests pending. */
  kill(): void {
    if (this.#handle === 0) return;
    this.#onEnd ??= () => {};
    this.command("exit");
    this.#deps.clock.after(INGRESS_THREAD_EXIT_MS_MAX, () => {
      if (this.#handle !== 0) this.#exitTimedOut();
    });
  }

  #idle(): void {
    this.#onIdle?.();
    this.#onIdle = null;
  }

  /** The thread does not end; waiting longer could take forever. */
  #exitTimedOut(): void {
    this.#handle = 0;
    this.#leave(new Error(`an ingress thread did not end in ${INGRESS_THREAD_EXIT_MS_MAX} ms`));
  }

  #exited(failure: Error | null): void {
    this.#deps.native.ingressThreadClose(this.#handle);
    this.#handle = 0;
    this.#leave(failure);
  }

  #leave(failure: Error | null): void {
    this.#deps.flushEvents();
    this.#failure = failure;
    const onEnd = this.#onEnd;
    this.#onEnd = null;
    if (onEnd === null) this.#deps.onDeath(failure ?? new Error("an ingress thread ended"));
    else onEnd(failure);
    this.#idle();
  }
}

function startError(code: number): string {
  if (code === NO_PRIORITY) {
    return (
      "host.realtime: the system denies real-time priority: it requires CAP_SYS_NICE, or a " +
      "limit of 1 or more (LimitRTPRIO of systemd, --ulimit rtprio of Docker)"
    );
  }
  return `http.threads: a thread could not be started, the native engine returned ${code}`;
}
