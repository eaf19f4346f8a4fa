/** The fronts as the main thread has them, on a native engine that does what a test says. */

import { SetupError } from "../../src/core/errors.ts";
import type { Packet } from "../../src/core/flow.ts";
import type { KeyOwner } from "../../src/limits/gate.ts";
import type { Pass, PassNews } from "../../src/limits/key-cache-entry.ts";
import type { PassHolder } from "../../src/limits/key-cache-sync.ts";
import {
  FRONT_STATES,
  FRONT_TOLD,
  type NativeFrontMemory,
  type NativeFrontOptions,
  type NativeFronts,
  OK,
} from "../../src/native/contract.ts";
import { createFronts, type Fronts } from "../../src/native-ingress/ingress-threads.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createRecordWriter } from "../support/record-writer.ts";

export const PASS: Pass = {
  token: "t",
  keyId: "k",
  account: "acme",
  plan: { name: "P", ratePerSecond: 1, burst: 1, shared: false },
  expiresUnixMs: null,
  ranges: null,
  limit: null,
  isShared: false,
  accountCell: 0,
  keyCell: -1,
  place: 3,
};
export const PUBLIC_PORT = 18_899;
export const BEHIND_PORT = 40_404;
const FIRST_HANDLE = 256;

/** A front as far as the main thread sees it. */
export class FakeFront {
  readonly options: NativeFrontOptions;
  readonly memory: NativeFrontMemory;
  readonly wake: () => void;
  readonly writer;
  /** What it was told to do. */
  readonly told: number[] = [];
  readonly passes: { token: string; numbers: readonly number[]; ranges: string }[] = [];
  readonly passesOver: { token: string; place: number }[] = [];
  /** Places that it gives back with the next looks. */
  readonly returned: number[] = [];
  state: number = FRONT_STATES.runs;
  /** Is neither idle nor ends where it is told to. */
  isDeaf = false;
  /** What it answers where it is given a pass. */
  passAnswer: number = OK;
  closes = 0;
  /** How often it was asked what it gives back, after which it wakes again. */
  looks = 0;

  constructor(options: NativeFrontOptions, memory: NativeFrontMemory, wake: () => void) {
    this.options = options;
    this.memory = memory;
    this.wake = wake;
    this.writer = createRecordWriter(shared(memory.records));
  }

  /** Notes one repetition of these bytes. */
  note(...bytes: number[]): void {
    const note = { receivedNs: 1, decodedNs: 2, sentNs: 2, bodyBytes: 1, maxRetries: null };
    this.writer.repeated({ bytes: Uint8Array.from(bytes), place: PASS.place, ...note }, 1);
  }

  /** Is in that state from now on, and says so. */
  become(state: number): void {
    this.state = state;
    this.wake();
  }

  tell(what: number): void {
    this.told.push(what);
    if (this.isDeaf || what === FRONT_TOLD.drain) return;
    this.state = what === FRONT_TOLD.stop ? FRONT_STATES.idle : FRONT_STATES.ended;
    // Its thread says so by and by.
    queueMicrotask(this.wake);
  }
}

/** Of an array as fronts are given it. */
export function shared({ buffer }: Uint8Array): SharedArrayBuffer {
  if (buffer instanceof SharedArrayBuffer) return buffer;
  throw new Error("memory that is not shared");
}

function fakeNative() {
  const fronts: FakeFront[] = [];
  const listens: { fronts: readonly number[]; host: string; port: number; perAddress: number }[] =
    [];
  const find = (handle: number): FakeFront => {
    const front = fronts[handle - FIRST_HANDLE];
    if (front === undefined || front.closes > 0) throw new Error(`no front has handle ${handle}`);
    return front;
  };
  const engine = {
    fronts,
    listens,
    /** What the next starts answer that fail, the last of them first; null: that one does not. */
    startAnswers: [] as (number | null)[],
    listenAnswer: PUBLIC_PORT,
  };
  const native: NativeFronts = {
    frontStart(options, memory, wake) {
      const answer = engine.startAnswers.pop() ?? null;
      if (answer !== null) return answer;
      fronts.push(new FakeFront(options, memory, wake));
      return FIRST_HANDLE + fronts.length - 1;
    },
    frontsListen(handles, host, port, perAddress) {
      listens.push({ fronts: [...handles], host, port, perAddress });
      return engine.listenAnswer;
    },
    frontPass(front, token, numbers, ranges) {
      const { passes, passAnswer } = find(front);
      passes.push({ token, numbers: [...numbers], ranges });
      return passAnswer;
    },
    frontPassOver(front, token, place) {
      find(front).passesOver.push({ token, place });
      return OK;
    },
    frontReturned(front, out) {
      find(front).looks += 1;
      const places = find(front).returned.splice(0, out.length);
      out.set(places);
      return places.length;
    },
    frontTell(handle, what) {
      find(handle).tell(what);
      return OK;
    },
    frontState: (front) => find(front).state,
    frontClose(handle) {
      find(handle).closes += 1;
      return OK;
    },
  };
  return { engine, native };
}

/** What the passes are told of one front. */
interface FakeHolder {
  readonly post: (news: PassNews) => void;
  /** Each place that came back, and how much was in the books then. */
  readonly returned: { place: number; books: number }[];
  readonly granted: { token: string; owner: KeyOwner }[];
  left: boolean;
}

export function rig(count = 2) {
  const clock = createFakeClock();
  const { engine, native } = fakeNative();
  const books: string[] = [];
  const deaths: unknown[] = [];
  /** How many repetitions were in the books each time that it gave way. */
  const ways: number[] = [];
  /** And each time that everything was to be taken in. */
  const settled: number[] = [];
  const holders: FakeHolder[] = [];
  const passes = { stops: 0 };
  const memory = {
    routes: new SharedArrayBuffer(8),
    passes: new SharedArrayBuffer(16),
    seen: new SharedArrayBuffer(24),
  };
  const fronts: Fronts = createFronts(
    {
      clock,
      native,
      giveWay: () => void ways.push(books.length),
      settle() {
        settled.push(books.length);
        fronts.adopt();
      },
      books: {
        adopt: () => {},
        repeated: ({ bytes, account }: Pick<Packet, "bytes" | "account">) =>
          void books.push(`${account} ${bytes[0]}`),
      },
      latency: { record() {} },
      usage: null,
      passes: {
        join({ post }) {
          const holder: FakeHolder = { post, returned: [], granted: [], left: false };
          holders.push(holder);
          const told: PassHolder = {
            grant: (token, owner) => void holder.granted.push({ token, owner }),
            take: ({ place }) => void holder.returned.push({ place, books: books.length }),
            leave() {
              holder.left = true;
            },
          };
          return told;
        },
        stop() {
          passes.stops += 1;
        },
        counters: { passes: 0, granted: 0, revoked: 0, evicted: 0, declined: 0 },
      },
      onDeath: (cause) => deaths.push(cause),
    },
    {
      count,
      engine: () => 7,
      decoder: 1,
      realtime: false,
      host: "127.0.0.1",
      port: 0,
      relayHeader: "x-relayed",
      connectionsMax: 10,
      connectionsPerAddress: 6,
      relaysMax: 5,
      relaysPerAddress: 3,
      readTimeoutMs: 10_000,
      ...memory,
    },
  );
  const told = { books, deaths, ways, settled, holders, passes };
  return { clock, engine, fronts, memory, threads: engine.fronts, ...told };
}

/** What it throws, which is a fault of the set-up. */
export function faultOf(act: () => unknown): SetupError {
  try {
    act();
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
  throw new Error("nothing went wrong");
}

/** The same, started, each with one pass. */
export function started(count = 2) {
  const all = rig(count);
  all.fronts.start(BEHIND_PORT);
  for (const { post } of all.holders) post({ kind: "pass", pass: PASS });
  /** The front of that number. */
  const thread = (number: number): FakeFront => {
    const found = all.threads[number];
    if (found === undefined) throw new Error(`no front ${number}`);
    return found;
  };
  return { ...all, thread };
}
