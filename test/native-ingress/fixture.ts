/** The ingress threads as the main thread manages them, on a native engine controlled by a test. */

import { openSync } from "node:fs";
import { SetupError } from "../../src/core/errors.ts";
import {
  INGRESS_THREAD_COMMANDS,
  INGRESS_THREAD_STATES,
  type NativeIngress,
  type NativeIngressThreadOptions,
  type NativeQuicListenOptions,
  OK,
} from "../../src/native/contract.ts";
import {
  type CertificateSource,
  createIngressThreads,
  type IngressThreads,
} from "../../src/native-ingress/ingress-threads.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** The engine's handle of the key table. */
export const KEY_TABLE = 11;
export const PUBLIC_PORT = 18_899;
export const UPSTREAM_PORT = 40_404;
const FIRST_HANDLE = 256;

/** An ingress thread as far as the main thread sees it. */
export class FakeIngressThread {
  readonly options: NativeIngressThreadOptions;
  readonly counters: Uint8Array;
  readonly wake: () => void;
  /** What the engine's threads wrote and the main thread has not read. */
  readonly #unread: number[];
  /** The commands that it received. */
  readonly commands: number[] = [];
  state: number = INGRESS_THREAD_STATES.running;
  /** Neither becomes idle nor exits when commanded. */
  isDeaf = false;
  closes = 0;
  /** How often its state was read, after which it wakes again. */
  looks = 0;

  constructor(
    options: NativeIngressThreadOptions,
    counters: Uint8Array,
    wake: () => void,
    unread: number[],
  ) {
    this.options = options;
    this.counters = counters;
    this.wake = wake;
    this.#unread = unread;
  }

  /** Records the submission of this number. */
  note(number: number): void {
    this.#unread.push(number);
  }

  /** Enters this state, and wakes the main thread. */
  become(state: number): void {
    this.state = state;
    this.wake();
  }

  command(what: number): void {
    this.commands.push(what);
    if (this.isDeaf || what === INGRESS_THREAD_COMMANDS.drain) return;
    this.state =
      what === INGRESS_THREAD_COMMANDS.stop
        ? INGRESS_THREAD_STATES.idle
        : INGRESS_THREAD_STATES.exited;
    // The thread reports it slightly later.
    queueMicrotask(this.wake);
  }
}

/** The buffer of an array as ingress threads receive it. */
export function shared({ buffer }: Uint8Array): SharedArrayBuffer {
  if (buffer instanceof SharedArrayBuffer) return buffer;
  throw new Error("memory that is not shared");
}

function fakeNative() {
  const threads: FakeIngressThread[] = [];
  const sockets: { host: string; port: number }[] = [];
  const certificates: {
    threads: readonly number[];
    certificate: string;
    key: string;
    quic: boolean;
  }[] = [];
  const listens: { threads: readonly number[]; descriptor: number; perAddress: number }[] = [];
  const find = (handle: number): FakeIngressThread => {
    const thread = threads[handle - FIRST_HANDLE];
    if (thread === undefined || thread.closes > 0)
      throw new Error(`no ingress thread has handle ${handle}`);
    return thread;
  };
  const unread: number[] = [];
  const engine = {
    threads,
    unread,
    listens,
    /** What the threads present, in order; `tlsResult` answers each. */
    certificates,
    tlsResult: OK as number,
    /** Results of the next failing starts, the last one first; null: that start succeeds. */
    startResults: [] as (number | null)[],
    listenResult: PUBLIC_PORT,
    quicListens: [] as { threads: readonly number[]; options: NativeQuicListenOptions }[],
    quicResult: 8_009,
    /** Batches of receipts, and the answer to each. */
    receipts: [] as { threads: readonly number[]; batch: Buffer }[],
    receiptsResult: 1,
    /** null: a descriptor that can be closed. */
    socketResult: null as number | null,
    /** Where sockets were asked for. */
    sockets,
  };
  const native: NativeIngress = {
    ingressThreadStart(options, counters, wake) {
      const answer = engine.startResults.pop() ?? null;
      if (answer !== null) return answer;
      threads.push(new FakeIngressThread(options, counters, wake, unread));
      return FIRST_HANDLE + threads.length - 1;
    },
    socketListen(host, port) {
      sockets.push({ host, port });
      return engine.socketResult ?? openSync("/dev/null", "r");
    },
    socketInherit: (descriptor) => descriptor,
    ingressThreadsListen(handles, descriptor, perAddress) {
      listens.push({ threads: [...handles], descriptor, perAddress });
      return engine.listenResult;
    },
    ingressThreadsTls(handles, certificate, key, quic) {
      const [chain = "", secret = ""] = [certificate, key].map((each) => String(each));
      certificates.push({ threads: [...handles], certificate: chain, key: secret, quic });
      return engine.tlsResult;
    },
    ingressThreadsListenQuic(handles, options) {
      engine.quicListens.push({ threads: [...handles], options });
      return engine.quicResult;
    },
    quicThreadAt: (before, threads, place) => (place + before.length) % threads,
    ingressThreadsReceipts(handles, batch) {
      engine.receipts.push({ threads: [...handles], batch: Buffer.from(batch) });
      return engine.receiptsResult;
    },
    ingressThreadCommand(handle, what) {
      find(handle).command(what);
      return OK;
    },
    ingressThreadState(handle) {
      const thread = find(handle);
      thread.looks += 1;
      return thread.state;
    },
    ingressThreadClose(handle) {
      find(handle).closes += 1;
      return OK;
    },
  };
  return { engine, native };
}

export function fixture(
  count = 2,
  socket: number | null = null,
  certificates: readonly CertificateSource[] = [],
  quic: NativeQuicListenOptions | null = null,
) {
  const clock = createFakeClock();
  const { engine, native } = fakeNative();
  const accounting: number[] = [];
  const deaths: unknown[] = [];
  /** How many submissions were in accounting each time that everything had to be processed. */
  const settled: number[] = [];
  const keys = { closes: 0 };
  const ingressThreads: IngressThreads = createIngressThreads(
    {
      clock,
      native,
      flushEvents() {
        settled.push(accounting.length);
        accounting.push(...engine.unread.splice(0));
      },
      keys: {
        handle: KEY_TABLE,
        close() {
          keys.closes += 1;
        },
      },
      onDeath: (cause) => deaths.push(cause),
    },
    {
      count,
      engine: () => 7,
      path: () => 9,
      decoder: 1,
      realtime: false,
      host: "127.0.0.1",
      port: 0,
      socket,
      forwardedHeader: "x-relayed",
      keylessResults: [],
      connectionsMax: 10,
      connectionsPerAddress: 6,
      certificates,
      upstreamConnectionsMax: 5,
      upstreamConnectionsPerAddress: 3,
      readTimeoutMs: 10_000,
      idleTimeoutMs: 75_000,
      quic,
    },
  );
  const told = { accounting, deaths, settled, keys };
  return { clock, engine, ingressThreads, threads: engine.threads, ...told };
}

/** The set-up error that `act` throws. */
export function faultOf(act: () => unknown): SetupError {
  try {
    act();
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
  throw new Error("nothing went wrong");
}

/** The same, started. */
export function started(count = 2) {
  const all = fixture(count);
  all.ingressThreads.start(UPSTREAM_PORT);
  /** The ingress thread of that number. */
  const thread = (number: number): FakeIngressThread => {
    const found = all.threads[number];
    if (found === undefined) throw new Error(`no ingress thread ${number}`);
    return found;
  };
  return { ...all, thread };
}
