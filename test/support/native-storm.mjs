/**
 * Calls every export of the addon with anything, on the main thread and on workers at once, while
 * engines and decoders come and go; in a process of its own, since what it looks for is a crash.
 * Prints how often each export answered a number and how often it threw, as JSON.
 */

import { createRequire } from "node:module";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const given = isMainThread ? JSON.parse(process.argv[2]) : workerData;
const { addon, exports, rounds, seed, workers, onlyWorkers } = given;

/** Numbers from 0 to 1, the same for the same seed. */
function createRandom(start) {
  let state = start >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const random = createRandom(seed);
const below = (count) => Math.floor(random() * count);
const pick = (list) => list[below(list.length)];

const NUMBERS = [
  ...[0, 1, 2, 3, 255, 256, 257, 511, 65_536, 2 ** 24, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53],
  ...[-1, -0.5, 0.5, Number.NaN, Infinity, -Infinity, 1e300],
];
const STRINGS = [
  "",
  "x",
  "127.0.0.1:9",
  "127.0.0.1:0",
  "[::1]:9",
  "0.0.0.0:1",
  "http://127.0.0.1:9",
  "https://127.0.0.1:9/x?y",
  "ws://127.0.0.1:9",
  "wss://[::1]:9/x?y",
  "\u0000",
  "é".repeat(999),
];
const buffer = new ArrayBuffer(4096);
const STRANGE = [
  new Proxy(new Uint8Array(64), {}),
  { length: 2 ** 32, 0: 1 },
  new Array(2 ** 32 - 1),
  new DataView(buffer),
  buffer,
  new SharedArrayBuffer(64),
  Buffer.alloc(64),
  new Uint8ClampedArray(64),
  new Int8Array(64),
  new Uint16Array(64),
  new Int32Array(64),
  new Float32Array(64),
  new BigUint64Array(64),
  null,
  undefined,
  true,
  "text",
  7n,
  Symbol("s"),
  {},
  [],
  () => 1,
  new Map(),
  new Date(0),
];

function detached(kind) {
  const view = new kind(8);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
}

/** A view whose length follows its buffer, which has shrunk below its start or has grown. */
function resized(kind) {
  const shrinks = below(2) === 0;
  const width = kind.BYTES_PER_ELEMENT;
  const whole = new ArrayBuffer(64 * width, { maxByteLength: 8192 });
  const view = new kind(whole, 8 * width);
  whole.resize(shrinks ? below(9) * width : 8192);
  return view;
}

function arrayOf(kind) {
  const size = pick([0, 1, 2, 3, 8, 11, 33, 64, 1232]);
  const choice = below(10);
  if (choice === 8) return resized(kind);
  // Several of these share their memory, and two of a call may.
  if (choice === 9) return new kind(buffer, 8 * below(64), below(400));
  if (choice === 0) return detached(kind);
  if (choice === 1) return new kind(new SharedArrayBuffer(size * kind.BYTES_PER_ELEMENT));
  if (choice === 2) return new kind(new ArrayBuffer(4096), 64, Math.min(size, 400));
  return new kind(size).map(() => pick(NUMBERS));
}

/** Engines, decoders, askers and feeds that were made and may be gone, as handles. */
const handles = [0];

const MAKERS = {
  number: () => (below(2) === 0 ? pick(handles) : pick(NUMBERS)),
  boolean: () => below(2) === 0,
  string: () => pick(STRINGS),
  Uint8Array: () => arrayOf(Uint8Array),
  Uint32Array: () => arrayOf(Uint32Array),
  Float64Array: () => arrayOf(Float64Array),
  "() => void": () => pick([() => undefined, () => undefined, brokenWake]),
  NativeEngineOptions: () =>
    pick([plainOptions, plainOptions, plainOptions, plainOptions, trickyOptions])(),
};

const WAKE_MESSAGE = "a wake that throws";
function brokenWake() {
  throw new Error(WAKE_MESSAGE);
}
// What a wake throws is the caller's, and comes to where nobody caught it.
process.on("uncaughtException", (error) => {
  if (error.message === WAKE_MESSAGE) return;
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});

/** Options whose members call the addon, throw, or are told by a proxy, while they are read. */
function trickyOptions() {
  const options = plainOptions();
  const native = createRequire(import.meta.url)(addon);
  const tricks = [
    () => native.engineStop(pick(handles), 0),
    () => native.txSend(pick(handles), new Uint32Array(4), new Uint8Array(9), 1, 1),
    () => {
      throw new Error("a member that throws");
    },
  ];
  const member = pick(Object.keys(options));
  const value = options[member];
  Object.defineProperty(options, member, {
    get() {
      pick(tricks)();
      return value;
    },
  });
  return below(2) === 0 ? options : new Proxy(options, {});
}

function plainOptions() {
  return {
    binds: pick([
      ["127.0.0.1:0"],
      ["127.0.0.1:0"],
      ["[::1]:0", "127.0.0.1:0"],
      [],
      ["no"],
      7,
      new Array(2 ** 32 - 1),
    ]),
    seed: pick([new Uint8Array(32), new Uint8Array(32), new Uint8Array(31), "seed"]),
    queueMax: pick([1, 64, 64, 0, -1, Number.NaN]),
    inFlightMax: pick([1, 64, 64, 0, -1]),
    outcomesMax: pick([1, 64, 64, 0, -1]),
    admissionTimeoutMs: pick([10, 50, 9, -1]),
    idleTimeoutMs: pick([10, 1000, 1000, 0]),
    keepAliveMs: pick([10, 1000, 1000, 0]),
    ackEvery: pick([0, 10, -1]),
    ackDelayMs: pick([0, 25, -1]),
    busyPollUs: pick([0, 100, 2 ** 32 - 1]),
  };
}

const MAKING = new Set(["engineStart", "decoderCreate", "peerOpen", "askerOpen", "feedOpen"]);

function argument(type) {
  if (below(12) === 0) return pick(STRANGE);
  return MAKERS[type]();
}

function storm(native) {
  const told = {};
  for (let round = 0; round < rounds; round += 1) {
    const { name, types } = pick(exports);
    told[name] ??= { answered: 0, threw: 0 };
    const args = types.map(argument);
    // Too few and too many are asked for as well.
    if (below(20) === 0) args.length = below(args.length + 1);
    if (name === "engineStop" && below(10) > 0) args[1] = below(3);
    let answer;
    try {
      answer = native[name](...args);
    } catch {
      // An argument of another type than declared is the caller's bug and throws.
      told[name].threw += 1;
      continue;
    }
    if (typeof answer !== "number") throw new Error(`${name} answered a ${typeof answer}`);
    told[name].answered += 1;
    if (MAKING.has(name) && answer > 0) handles[below(32)] = answer;
  }
  return told;
}

if (!isMainThread) {
  parentPort.postMessage(storm(createRequire(import.meta.url)(addon)));
} else {
  const others = Array.from(
    { length: workers },
    (_, index) =>
      new Promise((resolve, reject) => {
        const data = { ...given, seed: seed + index + 1 };
        const worker = new Worker(new URL(import.meta.url), { workerData: data });
        worker.once("error", reject);
        let told;
        worker.once("message", (message) => {
          told = message;
        });
        worker.once("exit", () => resolve(told));
      }),
  );
  const own = onlyWorkers ? {} : storm(createRequire(import.meta.url)(addon));
  const all = [own, ...(await Promise.all(others))];
  process.stdout.write(JSON.stringify(all));
}
