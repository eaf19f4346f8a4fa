/** One front as the main thread has it: its thread, its memory and its passes. */

import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { PassNews } from "../limits/key-cache-entry.ts";
import type { Passes, PassHolder } from "../limits/key-cache-sync.ts";
import {
  FRONT_STATES,
  FRONT_TOLD,
  type NativeFronts,
  NO_PRIORITY,
  PASS_NUMBERS,
} from "../native/contract.ts";
import { FRONT_END_MS_MAX } from "./limits.ts";
import type { PassOwner } from "./record-consumer.ts";
import { RecordReader, recordsMemory } from "./record-ring.ts";
import { type FrontFigures, frontFigures, frontFiguresMemory } from "./thread-counters.ts";

export interface HandleDeps {
  readonly clock: Clock;
  readonly native: NativeFronts;
  readonly passes: Pick<Passes, "join" | "stop" | "counters">;
  /** A front is dead. */
  readonly onDeath: (cause: unknown) => void;
}

/** What all fronts are started with. */
export interface FrontTask {
  /** The handles of the native engine, and of its decoder. */
  readonly engine: number;
  readonly decoder: number;
  /** Whether its thread goes before others. */
  readonly realtime: boolean;
  /** Connections of one front, to clients and to the server behind it. */
  readonly connectionsMax: number;
  readonly relaysMax: number;
  /** Of those, for clients of one address. */
  readonly relaysPerAddress: number;
  /** How long a client may take for a request's head, and for its body. */
  readonly readTimeoutMs: number;
  /** Where the server of the main thread listens, on loopback, and the line it reads. */
  readonly behindPort: number;
  readonly relayHeader: string;
  /** Where leaders are reached, what was accepted a moment ago, and the states of limits. */
  readonly routes: SharedArrayBuffer;
  readonly seen: SharedArrayBuffer;
  readonly passes: SharedArrayBuffer;
}

export class FrontHandle {
  readonly records: RecordReader;
  readonly figures: FrontFigures;
  readonly #deps: HandleDeps;
  readonly #owners: PassOwner[];
  readonly #adopt: () => void;
  readonly #memory = { records: recordsMemory(), figures: frontFiguresMemory() };
  readonly #returned = new Float64Array(RETURNED_A_LOOK);
  /** The native engine's; 0: it does not run. */
  #front = 0;
  #holder: PassHolder | null = null;
  /** That it failed. */
  #failure: Error | null = null;
  #onIdle: (() => void) | null = null;
  #onEnd: ((failure: Error | null) => void) | null = null;

  /** `owners` are by the place of their pass; `adopt` takes in what all fronts did so far. */
  constructor(deps: HandleDeps, owners: PassOwner[], adopt: () => void) {
    this.#deps = deps;
    this.#owners = owners;
    this.#adopt = adopt;
    this.records = new RecordReader(this.#memory.records);
    this.figures = frontFigures(this.#memory.figures);
  }

  /** The native engine's; 0 while it does not run. */
  get front(): number {
    return this.#front;
  }

  /** Its thread runs from now on. `wake` says that it has something. @throws SetupError */
  start(task: FrontTask, number: number, wake: () => void): void {
    const { native, passes } = this.#deps;
    const { engine, decoder, realtime, behindPort, relayHeader } = task;
    const { connectionsMax, relaysMax, relaysPerAddress, readTimeoutMs } = task;
    const bounds = { connectionsMax, relaysMax, relaysPerAddress, readTimeoutMs };
    const front = native.frontStart(
      { engine, decoder, number, realtime, ...bounds, behindPort, relayHeader },
      {
        records: new Uint8Array(this.#memory.records),
        figures: new Uint8Array(this.#memory.figures),
        routes: new Uint8Array(task.routes),
        seen: new Uint8Array(task.seen),
        passes: new Uint8Array(task.passes),
      },
      wake,
    );
    if (front <= 0) throw new SetupError(startFault(front));
    this.#front = front;
    this.#holder = passes.join({ post: (news) => this.#tellPass(news) });
  }

  /** Gives it a pass for the key with its next request, where that can be. */
  grant: PassHolder["grant"] = (token, owner) => this.#holder?.grant(token, owner);

  /** Takes in what it has given back, and whether it has ended. */
  heed(): void {
    if (this.#front === 0) return;
    const { native } = this.#deps;
    this.#takeReturned();
    const state = native.frontState(this.#front);
    if (state === FRONT_STATES.idle) this.#idle();
    else if (state === FRONT_STATES.ended) this.#ended(null);
    else if (state === FRONT_STATES.failed) this.#ended(new Error("a front's thread failed"));
  }

  /** New work is left to the main thread from now on. */
  drain(): void {
    this.#tell(FRONT_TOLD.drain);
  }

  /** It takes no connection any more. Resolves when nothing is in hand, or it has ended. */
  stop(): Promise<void> {
    if (this.#front === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      this.#onEnd ??= () => {};
      this.#tell(FRONT_TOLD.stop);
    });
  }

  /** Closes every connection. Resolves when its thread has ended. @throws where it has failed */
  end(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#front === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#onEnd = (failure) => (failure === null ? resolve() : reject(failure));
      this.kill();
    });
  }

  /** Closes every connection at once, whatever is in hand. */
  kill(): void {
    if (this.#front === 0) return;
    this.#onEnd ??= () => {};
    this.#tell(FRONT_TOLD.end);
    this.#deps.clock.after(FRONT_END_MS_MAX, () => {
      if (this.#front !== 0) this.#lost();
    });
  }

  #tell(what: number): void {
    if (this.#front !== 0) this.#deps.native.frontTell(this.#front, what);
  }

  #takeReturned(): void {
    const { native } = this.#deps;
    for (;;) {
      const count = native.frontReturned(this.#front, this.#returned);
      if (count <= 0) return;
      // A place may be another's from now on, and what its pass let in is in the ring.
      this.#adopt();
      for (const place of this.#returned.subarray(0, count)) {
        this.#holder?.take({ kind: "passReturned", place });
      }
    }
  }

  /** A record names its owner by the place, so whose it is has to be known first. */
  #tellPass(news: PassNews): void {
    const { native } = this.#deps;
    if (news.kind === "passOver") {
      native.frontPassOver(this.#front, news.token, news.place);
      return;
    }
    const { place, keyId, account, token, ranges } = news.pass;
    this.#owners[place] = { keyId, account };
    // Where it cannot be taken, the requests of that key go on being relayed.
    native.frontPass(this.#front, token, passNumbers(news.pass), ranges?.join() ?? "");
  }

  #idle(): void {
    this.#onIdle?.();
    this.#onIdle = null;
  }

  /** It does not end, so it is not waited for: that could be for ever. */
  #lost(): void {
    this.#front = 0;
    this.#leave(new Error("a front's thread does not end"));
  }

  #ended(failure: Error | null): void {
    this.#deps.native.frontClose(this.#front);
    this.#front = 0;
    this.#leave(failure);
  }

  #leave(failure: Error | null): void {
    this.#adopt();
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
const RETURNED_A_LOOK = 256;

/** As the engine takes them, see `frontPass`; -1 for what there is none of. */
function passNumbers(pass: Extract<PassNews, { readonly kind: "pass" }>["pass"]): Float64Array {
  const { plan, limit, isShared, ranges } = pass;
  const numbers = new Float64Array(PASS_NUMBERS);
  numbers.set([
    pass.place,
    plan.ratePerSecond,
    plan.burst,
    isShared ? 1 : 0,
    pass.accountCell,
    pass.keyCell,
    limit?.ratePerSecond ?? -1,
    limit?.burst ?? -1,
    pass.expiresUnixMs ?? -1,
    ranges === null ? 0 : 1,
  ]);
  return numbers;
}

function startFault(answer: number): string {
  if (answer === NO_PRIORITY) {
    return (
      "host.realtime: the system allows it no real-time priority: it takes CAP_SYS_NICE, or a " +
      "limit for it of 1 or more (LimitRTPRIO of systemd, --ulimit rtprio of Docker)"
    );
  }
  return `http.threads: a thread could not be started, the native engine answers ${answer}`;
}
