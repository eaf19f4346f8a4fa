/** The main thread's handle of one ingress thread: its thread, its memory and its key cache. */

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
import type { KeyAccounts } from "./key-accounts.ts";
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
  /** The thread has died. */
  readonly onDeath: (cause: unknown) => void;
}

/** Start parameters common to all ingress threads. */
export interface IngressThreadConfig {
  /** The handles of the native engine, and of its decoder. */
  readonly engine: number;
  readonly decoder: number;
  /** Whether the thread gets real-time priority. */
  readonly realtime: boolean;
  /** Connections of one thread, to clients and to the upstream server. */
  readonly connectionsMax: number;
  readonly upstreamConnectionsMax: number;
  /** Upstream connections for clients of one address. */
  readonly upstreamConnectionsPerAddress: number;
  /** Timeout for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** How long a connection may be idle. */
  readonly idleTimeoutMs: number;
  /** The loopback port of the main thread's server, and the name of the forwarded header. */
  readonly upstreamPort: number;
  readonly forwardedHeader: string;
  /** The shared target table, dedup cache, and limit states. */
  readonly targets: SharedArrayBuffer;
  readonly dedup: SharedArrayBuffer;
  readonly keyCache: SharedArrayBuffer;
}

export class IngressThread {
  readonly records: RecordReader;
  readonly stats: IngressThreadCounters;
  readonly #deps: IngressThreadDeps;
  readonly #principals: CachedKeyPrincipal[];
  readonly #keyAccounts: KeyAccounts;
  readonly #reconcile: () => void;
  readonly #memory = { records: recordsMemory(), counters: ingressThreadCountersMemory() };
  readonly #releasedSlots = new Float64Array(RELEASED_SLOTS_PER_READ);
  /** The engine's handle of the thread; 0: not running. */
  #handle = 0;
  #holder: ThreadKeyCache | null = null;
  /** The thread's error. */
  #failure: Error | null = null;
  #onIdle: (() => void) | null = null;
  #onEnd: ((failure: Error | null) => void) | null = null;

  /**
   * `principals` and `keyAccounts` are by key slot, of all threads; `reconcile` reads the records
   * of all threads.
   */
  constructor(
    deps: IngressThreadDeps,
    principals: CachedKeyPrincipal[],
    keyAccounts: KeyAccounts,
    reconcile: () => void,
  ) {
    this.#deps = deps;
    this.#principals = principals;
    this.#keyAccounts = keyAccounts;
    this.#reconcile = reconcile;
    this.records = new RecordReader(this.#memory.records);
    this.stats = ingressThreadCounters(this.#memory.counters);
  }

  /** The engine's handle of the thread; 0 while it does not run. */
  get handle(): number {
    return this.#handle;
  }

  /** Starts the thread, which calls `wake` when it has something to read. @throws SetupError */
  start(task: IngressThreadConfig, number: number, wake: () => void): void {
    const { native, keyCache } = this.#deps;
    const { engine, decoder, realtime, upstreamPort, forwardedHeader } = task;
    const { connectionsMax, upstreamConnectionsMax, upstreamConnectionsPerAddress } = task;
    const bounds = {
      connectionsMax,
      upstreamConnectionsMax,
      upstreamConnectionsPerAddress,
      readTimeoutMs: task.readTimeoutMs,
      idleTimeoutMs: task.idleTimeoutMs,
    };
    const handle = native.ingressThreadStart(
      { engine, decoder, number, realtime, ...bounds, upstreamPort, forwardedHeader },
      {
        records: new Uint8Array(this.#memory.records),
        counters: new Uint8Array(this.#memory.counters),
        targets: new Uint8Array(task.targets),
        dedup: new Uint8Array(task.dedup),
        limitStates: new Uint8Array(task.keyCache),
        keyAccounts: new Uint8Array(this.#keyAccounts.memory),
      },
      wake,
    );
    if (handle <= 0) throw new SetupError(startError(handle));
    this.#handle = handle;
    this.#holder = keyCache.join({ post: (update) => this.#sendKeyUpdate(update) });
  }

  /** Grants the key to the thread if possible. */
  grant: ThreadKeyCache["grant"] = (token, principal) => this.#holder?.grant(token, principal);

  /** Reads released slots and the thread's state. */
  onWake(): void {
    if (this.#handle === 0) return;
    const { native } = this.#deps;
    this.#readReleasedSlots();
    const state = native.ingressThreadState(this.#handle);
    if (state === INGRESS_THREAD_STATES.idle) this.#idle();
    else if (state === INGRESS_THREAD_STATES.exited) this.#exited(null);
    else if (state === INGRESS_THREAD_STATES.panicked)
      this.#exited(new Error("an ingress thread panicked"));
  }

  /** From now on the thread proxies health checks to the main thread. */
  announceDrain(): void {
    this.#command(INGRESS_THREAD_COMMANDS.announceDrain);
  }

  /** From now on the thread proxies new work to the main thread. */
  rejectNewWork(): void {
    this.#command(INGRESS_THREAD_COMMANDS.drain);
  }

  /** From now on the thread accepts no connection, and closes each with its next response. */
  retire(): void {
    this.#command(INGRESS_THREAD_COMMANDS.retire);
  }

  /** Accepts no more connections. Resolves when nothing is pending, or the thread has ended. */
  stop(): Promise<void> {
    if (this.#handle === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#onEnd ??= () => {};
      this.#command(INGRESS_THREAD_COMMANDS.stop);
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
      // The slots may be reused from now on, and the ring may hold records of their keys.
      this.#reconcile();
      for (const keySlot of this.#releasedSlots.subarray(0, count)) {
        this.#holder?.onReturned({ kind: "slotReleased", keySlot });
      }
    }
  }

  /** A record identifies its principal by key slot, so the principal is stored first. */
  #sendKeyUpdate(update: KeyUpdate): void {
    const { native } = this.#deps;
    if (update.kind === "revoke") {
      native.ingressThreadRevokeKey(this.#handle, update.token, update.keySlot);
      return;
    }
    const { keySlot, keyId, account, plan, token, ranges } = update.grant;
    this.#principals[keySlot] = { keyId, account, plan: plan.name };
    this.#keyAccounts.set(keySlot, account);
    // If the call fails, requests of that key continue to be proxied.
    native.ingressThreadGrantKey(
      this.#handle,
      token,
      plan.name,
      grantNumbers(update.grant),
      ranges?.join() ?? "",
    );
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
    this.#reconcile();
    this.#holder?.leave();
    this.#failure = failure;
    const onEnd = this.#onEnd;
    this.#onEnd = null;
    if (onEnd === null) this.#deps.onDeath(failure ?? new Error("an ingress thread ended"));
    else onEnd(failure);
    this.#idle();
  }
}

/** Released slots read per call. */
const RELEASED_SLOTS_PER_READ = 256;

/** As `ingressThreadGrantKey` expects them; -1 for absent values. */
function grantNumbers(
  grant: Extract<KeyUpdate, { readonly kind: "grant" }>["grant"],
): Float64Array {
  const { plan, limit, isGlobal, ranges } = grant;
  const numbers = new Float64Array(KEY_GRANT_NUMBERS);
  numbers.set([
    grant.keySlot,
    plan.ratePerSecond,
    plan.burst,
    isGlobal ? 1 : 0,
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
      "host.realtime: the system denies real-time priority: it requires CAP_SYS_NICE, or a " +
      "limit of 1 or more (LimitRTPRIO of systemd, --ulimit rtprio of Docker)"
    );
  }
  return `http.threads: a thread could not be started, the native engine returned ${code}`;
}
