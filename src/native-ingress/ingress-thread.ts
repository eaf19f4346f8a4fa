/** One front as the main thread has it: its thread, its memory and its passes. */

import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { KeyUpdate } from "../limits/key-cache-entry.ts";
import type { KeyCacheSync, ThreadKeyCache } from "../limits/key-cache-sync.ts";
import {
  INGRESS_THREAD_COMMANDS,
  INGRESS_THREAD_STATES,
  KEY_GRANT_NUMBERS,
  type NativeIngress,
  NO_PRIORITY,
} from "../native/contract.ts";
import { INGRESS_THREAD_EXIT_MS_MAX } from "./limits.ts";
import type { CachedKeyPrincipal } from "./record-consumer.ts";
import { RecordReader, recordsMemory } from "./record-ring.ts";
import {
  type IngressThreadCounters,
  ingressThreadCounters,
  ingressThreadCountersMemory,
} from "./thread-counters.ts";

export interface IngressThreadDeps {
  readonly clock: Clock;
  readonly native: NativeIngress;
  readonly keyCache: Pick<KeyCacheSync, "join" | "stop" | "counters">;
  /** A front is dead. */
  readonly onDeath: (cause: unknown) => void;
}

/** What all fronts are started with. */
export interface IngressThreadConfig {
  /** The handles of the native engine, and of its decoder. */
  readonly engine: number;
  readonly decoder: number;
  /** Whether its thread goes before others. */
  readonly realtime: boolean;
  /** Connections of one front, to clients and to the server behind it. */
  readonly connectionsMax: number;
  readonly upstreamConnectionsMax: number;
  /** Of those, for clients of one address. */
  readonly upstreamConnectionsPerAddress: number;
  /** How long a client may take for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** Where the server of the main thread listens, on loopback, and the line it reads. */
  readonly upstreamPort: number;
  readonly forwardedHeader: string;
  /** Where leaders are reached, what was accepted a moment ago, and the states of limits. */
  readonly routes: SharedArrayBuffer;
  readonly dedup: SharedArrayBuffer;
  readonly keyCache: SharedArrayBuffer;
}

export class IngressThread {
  readonly records: RecordReader;
  readonly figures: IngressThreadCounters;
  readonly #deps: IngressThreadDeps;
  readonly #principals: CachedKeyPrincipal[];
  readonly #reconcile: () => void;
  readonly #memory = { records: recordsMemory(), figures: ingressThreadCountersMemory() };
  readonly #releasedSlots = new Float64Array(RELEASED_SLOTS_PER_READ);
  /** The native engine's; 0: it does not run. */
  #handle = 0;
  #holder: ThreadKeyCache | null = null;
  /** That it failed. */
  #failure: Error | null = null;
  #onIdle: (() => void) | null = null;
  #onEnd: ((failure: Error | null) => void) | null = null;

  /** `owners` are by the place of their pass; `reconcile` takes in what all fronts did so far. */
  constructor(deps: IngressThreadDeps, principals: CachedKeyPrincipal[], reconcile: () => void) {
    this.#deps = deps;
    this.#principals = principals;
    this.#reconcile = reconcile;
    this.records = new RecordReader(this.#memory.records);
    this.figures = ingressThreadCounters(this.#memory.figures);
  }

  /** The native engine's; 0 while it does not run. */
  get handle(): number {
    return this.#handle;
  }

  /** Its thread runs from now on. `wake` says that it has something. @throws SetupError */
  start(task: IngressThreadConfig, number: number, wake: () => void): void {
    const { native, keyCache } = this.#deps;
    const { engine, decoder, realtime, upstreamPort, forwardedHeader } = task;
    const { connectionsMax, upstreamConnectionsMax, upstreamConnectionsPerAddress, readTimeoutMs } =
      task;
    const bounds = {
      connectionsMax,
      upstreamConnectionsMax,
      upstreamConnectionsPerAddress,
      readTimeoutMs,
    };
    const handle = native.ingressThreadStart(
      { engine, decoder, number, realtime, ...bounds, upstreamPort, forwardedHeader },
      {
        records: new Uint8Array(this.#memory.records),
        figures: new Uint8Array(this.#memory.figures),
        routes: new Uint8Array(task.routes),
        dedup: new Uint8Array(task.dedup),
        keyCache: new Uint8Array(task.keyCache),
      },
      wake,
    );
    if (handle <= 0) throw new SetupError(startError(handle));
    this.#handle = handle;
    this.#holder = keyCache.join({ post: (news) => this.#sendKeyUpdate(news) });
  }

  /** Gives it a pass for the key with its next request, where that can be. */
  grant: ThreadKeyCache["grant"] = (token, principal) => this.#holder?.grant(token, principal);

  /** Takes in what it has given back, and whether it has ended. */
  onWake(): void {
    if (this.#handle === 0) return;
    const { native } = this.#deps;
    this.#readReleasedSlots();
    const state = native.ingressThreadState(this.#handle);
    if (state === INGRESS_THREAD_STATES.idle) this.#idle();
    else if (state === INGRESS_THREAD_STATES.exited) this.#exited(null);
    else if (state === INGRESS_THREAD_STATES.panicked)
      this.#exited(new Error("a front's thread failed"));
  }

  /** New work is left to the main thread from now on. */
  drain(): void {
    this.#command(INGRESS_THREAD_COMMANDS.drain);
  }

  /** It takes no connection any more. Resolves when nothing is in hand, or it has ended. */
  stop(): Promise<void> {
    if (this.#handle === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#onEnd ??= () => {};
      this.#command(INGRESS_THREAD_COMMANDS.stop);
    });
  }

  /** Closes every connection. Resolves when its thread has ended. @throws where it has failed */
  end(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#handle === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#onEnd = (failure) => (failure === null ? resolve() : reject(failure));
      this.kill();
    });
  }

  /** Closes every connection at once, whatever is in hand. */
  kill(): void {
    if (this.#handle === 0) return;
    this.#onEnd ??= () => {};
    this.#command(INGRESS_THREAD_COMMANDS.exit);
    this.#deps.clock.after(INGRESS_THREAD_EXIT_MS_MAX, () => {
      if (this.#handle !== 0) this.#exitTimedOut();
    });
  }

  #command(command: number): void {
    if (this.#handle !== 0) this.#deps.native.ingressThreadCommand(this.#handle, command);
  }

  #readReleasedSlots(): void {
    const { native } = this.#deps;
    for (;;) {
      const count = native.ingressThreadReleasedSlots(this.#handle, this.#releasedSlots);
      if (count <= 0) return;
      // A place may be another's from now on, and what its pass let in is in the ring.
      this.#reconcile();
      for (const keySlot of this.#releasedSlots.subarray(0, count)) {
        this.#holder?.onReturned({ kind: "slotReleased", keySlot });
      }
    }
  }

  /** A record names its owner by the place, so whose it is has to be known first. */
  #sendKeyUpdate(news: KeyUpdate): void {
    const { native } = this.#deps;
    if (news.kind === "revoke") {
      native.ingressThreadRevokeKey(this.#handle, news.token, news.keySlot);
      return;
    }
    const { keySlot, keyId, account, token, ranges } = news.grant;
    this.#principals[keySlot] = { keyId, account };
    // Where it cannot be taken, the requests of that key go on being relayed.
    native.ingressThreadGrantKey(
      this.#handle,
      token,
      grantNumbers(news.grant),
      ranges?.join() ?? "",
    );
  }

  #idle(): void {
    this.#onIdle?.();
    this.#onIdle = null;
  }

  /** It does not end, so it is not waited for: that could be for ever. */
  #exitTimedOut(): void {
    this.#handle = 0;
    this.#leave(new Error("a front's thread does not end"));
  }

  #exited(failure: Error | null): void {
    this.#deps.native.ingressThreadClose(this.#handle);
    this.#handle = 0;
    this.#leave(failure);
  }

  #leave(failure: Error | null): void {
    this.#reconcile();
    this.#holder?.leave();
    this.#failure = failure;
    const onEnd = this.#onEnd;
    this.#onEnd = null;
    if (onEnd === null) this.#deps.onDeath(failure ?? new Error("a front's thread ended"));
    else onEnd(failure);
    this.#idle();
  }
}

/** Places of passes that are taken back in one look. */
const RELEASED_SLOTS_PER_READ = 256;

/** As the engine takes them, see `ingressThreadGrantKey`; -1 for what there is none of. */
function grantNumbers(
  grant: Extract<KeyUpdate, { readonly kind: "grant" }>["grant"],
): Float64Array {
  const { plan, limit, isShared, ranges } = grant;
  const numbers = new Float64Array(KEY_GRANT_NUMBERS);
  numbers.set([
    grant.keySlot,
    plan.ratePerSecond,
    plan.burst,
    isShared ? 1 : 0,
    grant.accountLimitSlot,
    grant.keyLimitSlot,
    limit?.ratePerSecond ?? -1,
    limit?.burst ?? -1,
    grant.expiresUnixMs ?? -1,
    ranges === null ? 0 : 1,
  ]);
  return numbers;
}

function startError(code: number): string {
  if (code === NO_PRIORITY) {
    return (
      "host.realtime: the system allows it no real-time priority: it takes CAP_SYS_NICE, or a " +
      "limit for it of 1 or more (LimitRTPRIO of systemd, --ulimit rtprio of Docker)"
    );
  }
  return `http.threads: a thread could not be started, the native engine answers ${code}`;
}
