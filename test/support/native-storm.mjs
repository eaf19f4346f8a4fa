/**
 * Calls every export of the addon with arbitrary arguments, on the main thread and on workers
 * concurrently, while engines, decoders and ingress threads start and stop; in its own process,
 * because it tests for crashes. Prints how often each export returned a number, a number above 0,
 * and threw, as JSON.
 */

import { closeSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const given = isMainThread ? JSON.parse(process.argv[2]) : workerData;
const { addon, exports, rounds, seed, workers, onlyWorkers, countersBytes } = given;

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
  "10.0.0.0/8,2001:db8::/32",
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
  const size = pick([0, 1, 2, 3, 8, 11, 33, 64, 148, 1232]);
  const choice = below(10);
  if (choice === 8) return resized(kind);
  // Several of these share their memory, and two of a call may.
  if (choice === 9) return new kind(buffer, 8 * below(64), below(400));
  if (choice === 0) return detached(kind);
  if (choice === 1) return new kind(new SharedArrayBuffer(size * kind.BYTES_PER_ELEMENT));
  if (choice === 2) return new kind(new ArrayBuffer(4096), 64, Math.min(size, 400));
  return new kind(size).map(() => pick(NUMBERS));
}

/** Handles of engines, decoders and ingress threads, alive or closed. */
const handles = [0];
/** The last few of each kind, by the function that created them. */
const latest = {
  engineStart: [0, 0, 0],
  decoderCreate: [0, 0, 0],
  keyTableCreate: [0, 0, 0],
  ingressThreadStart: [0, 0, 0],
  submitPathOpen: [0, 0, 0],
};
/** All ingress threads that this thread started. */
const threads = new Set();

const PLACES = [[], [0], [1, 0], [1, 1], [2 ** 32 - 1], Array(100).fill(0), [-1, Number.NaN]];

const MAKERS = {
  number: () => (below(2) === 0 ? pick(handles) : pick(NUMBERS)),
  boolean: () => below(2) === 0,
  string: () => pick(STRINGS),
  Uint8Array: () => arrayOf(Uint8Array),
  Uint32Array: () => arrayOf(Uint32Array),
  Float64Array: () => arrayOf(Float64Array),
  "() => void": () => pick([() => undefined, () => undefined, brokenWake]),
  NativeEngineOptions: () => mostlyPlain(plainOptions()),
  NativeIngressThreadOptions: () => mostlyPlain(ingressThreadOptions()),
};

const mostlyPlain = (record) => (below(5) === 0 ? tricky(record) : record);

const WAKE_MESSAGE = "a wake that throws";
function brokenWake() {
  throw new Error(WAKE_MESSAGE);
}
// An exception in a wake callback is the caller's, and is uncaught.
process.on("uncaughtException", (error) => {
  if (error.message === WAKE_MESSAGE) return;
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});

/** A record whose members call the addon, throw, or come from a proxy, while they are read. */
function tricky(record) {
  const native = createRequire(import.meta.url)(addon);
  const tricks = [
    () => native.engineStop(pick(handles), 0),
    () => native.txSend(pick(handles), new Uint32Array(4), new Uint8Array(9), 1, 1, 1, 1),
    () => native.ingressThreadClose(pick(handles)),
    () => native.submitPathClose(pick(handles)),
    () => {
      throw new Error("a member that throws");
    },
  ];
  const member = pick(Object.keys(record));
  const value = record[member];
  Object.defineProperty(record, member, {
    get() {
      pick(tricks)();
      return value;
    },
  });
  return below(2) === 0 ? record : new Proxy(record, {});
}

/** Creates valid arguments for an ingress thread, which random ones rarely are. */
function prepare(native) {
  const sockets = { binds: ["127.0.0.1:0"], seed: new Uint8Array(32) };
  const counts = { queueMax: 64, inFlightMax: 64, busyPollUs: 0 };
  const times = { admissionTimeoutMs: 50, idleTimeoutMs: 1000, keepAliveMs: 1000 };
  const engine = native.engineStart({ ...sockets, ...counts, ...times }, () => undefined);
  if (engine > 0) keep("engineStart", engine);
  const decoder = native.decoderCreate(new Uint8Array(32), 0, true, 1);
  if (decoder > 0) keep("decoderCreate", decoder);
  const keys = native.keyTableCreate();
  if (keys > 0) keep("keyTableCreate", keys);
  const path = native.submitPathOpen(engine, decoder);
  if (path > 0) keep("submitPathOpen", path);
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
    admissionTimeoutMs: pick([10, 50, 9, -1]),
    idleTimeoutMs: pick([10, 1000, 1000, 0]),
    keepAliveMs: pick([10, 1000, 1000, 0]),
    busyPollUs: pick([0, 100, 2 ** 32 - 1]),
  };
}

/** Mostly existing handles, so that ingress threads start. */
function ingressThreadOptions() {
  return {
    engine: pick([...latest.engineStart, pick(handles)]),
    decoder: pick([...latest.decoderCreate, pick(handles)]),
    keys: pick([...latest.keyTableCreate, pick(handles)]),
    path: pick([...latest.submitPathOpen, pick(handles)]),
    keylessResults: pick([[], [{ method: "é", json: "" }], [{ method: "a" }], "", [7]]),
    realtime: below(4) === 0,
    connectionsMax: pick([0, 1, 10, 10, 2 ** 32 - 1]),
    upstreamConnectionsMax: pick([0, 1, 10, 10, 2 ** 32 - 1]),
    upstreamConnectionsPerAddress: pick([0, 1, 10, 10, 2 ** 32 - 1]),
    readTimeoutMs: pick([0, 1, 10_000, 2 ** 32 - 1]),
    idleTimeoutMs: pick([0, 1, 75_000, 2 ** 32 - 1]),
    // No server listens there, and no client connects.
    upstreamPort: pick([9, 9, 9, 1, 0, 65_536, -1]),
    forwardedHeader: pick(["x-0a", "x-0a", "", "é", "x\r\ny: z", "x".repeat(99_999)]),
  };
}

/** Counters of ingress threads; many share the same. */
const memories = Array.from(
  { length: 2 },
  () => new Uint8Array(new SharedArrayBuffer(countersBytes, { maxByteLength: countersBytes + 64 })),
);

function ingressThreadCounters() {
  const whole = pick(memories);
  if (below(3) > 0) return whole;
  return pick([
    () => arrayOf(Uint8Array),
    () => whole.subarray(1),
    () => whole.subarray(8),
    () => new Uint8Array(whole.length),
    () => new Int8Array(whole.buffer),
    () => pick(STRANGE),
  ])();
}

/** The memory of some ingress threads grows; no other one starts on it from then on. */
function growMemory() {
  const { buffer } = memories[1];
  buffer.grow(buffer.maxByteLength);
}

/** A free port on loopback; no host name that needs a lookup. */
function listening() {
  const list = Uint32Array.from({ length: below(4) }, () => pick(latest.ingressThreadStart));
  return [
    below(3) === 0 ? argument("Uint32Array") : list,
    below(4) === 0 ? pick([0, Number.NaN, 65_536, 2 ** 31, -1, "0", null]) : server.fd,
    pick([0, 1, 10, 2 ** 32 - 1]),
  ];
}

/** Where to serve QUIC: on loopback, for few connections. */
function quicListening() {
  const [host, port] = address();
  const bounds = { connectionsMax: below(9), connectionsPerAddress: below(9) };
  const options = {
    ...{
      host,
      port,
      predecessorPlaces: pick(PLACES),
      processNumber: below(3),
    },
    streamTimeoutMs: below(9),
    ...{ ...bounds, connectionsPerAccount: below(9), drainTo: pick(STRINGS) },
  };
  const list = Uint32Array.from({ length: below(4) }, () => pick(latest.ingressThreadStart));
  return [below(3) === 0 ? argument("Uint32Array") : list, mostlyPlain(options)];
}

/** A host and a port, no host name that needs a lookup. */
function address() {
  return [
    pick(["127.0.0.1", "127.0.0.1", "127.0.0.1", "\u0000", "é".repeat(999), 7]),
    pick([0, 0, 0, 0, Number.NaN, 65_536, 2 ** 31, -1, "0", null]),
  ];
}

/** A descriptor that is none, or no listening socket: taking over one would close it. */
function descriptor() {
  return [pick([0, 1, 2 ** 20, 2 ** 31, 2 ** 32 - 1, -1, Number.NaN, "0", null])];
}

/** An ingress thread, mostly with memory that fits. */
function ingressThread() {
  const wake = argument("() => void");
  return [argument("NativeIngressThreadOptions"), ingressThreadCounters(), wake];
}

/** Mostly existing handles, so that a path is opened. */
function submitPath() {
  const [engine, decoder] = [pick(latest.engineStart), pick(latest.decoderCreate)];
  return [engine, decoder];
}

/** A submission, mostly to a path that is open. */
function submission() {
  const [path, out] = [pick(latest.submitPathOpen), new Uint8Array(pick([0, 135, 136, 200]))];
  const body = [argument("Uint8Array"), argument("boolean")];
  const numbers = Array.from({ length: 4 }, () => argument("number"));
  return [path, ...body, ...numbers, below(4) === 0 ? argument("Uint8Array") : out];
}

const ARGUMENTS = {
  ingressThreadStart: ingressThread,
  submitPathOpen: submitPath,
  submit: submission,
  ingressThreadsListen: listening,
  ingressThreadsListenQuic: quicListening,
  socketListen: address,
  socketInherit: descriptor,
};

const MAKING = new Set([
  "engineStart",
  "decoderCreate",
  "keyTableCreate",
  "peerOpen",
  "ingressThreadStart",
  "submitPathOpen",
]);

/** A listening socket, which the process keeps. */
const server = { fd: 0 };
await new Promise((resolve) => {
  const listener = createServer().listen(0, "127.0.0.1", () => {
    server.fd = listener._handle.fd;
    listener.unref();
    resolve();
  });
});

function argument(type) {
  if (below(12) === 0) return pick(STRANGE);
  return MAKERS[type]();
}

function storm(native) {
  const told = {};
  for (let round = 0; round < rounds; round += 1) {
    const { name, types } = pick(exports);
    told[name] ??= { answered: 0, threw: 0, positive: 0 };
    if (round === rounds >> 1) growMemory();
    if (round % 500 === 250) prepare(native);
    const args = ARGUMENTS[name]?.() ?? types.map(argument);
    // Too few and too many arguments are passed as well.
    if (below(20) === 0) args.length = below(args.length + 1);
    if (name === "engineStop" && below(10) > 0) args[1] = below(3);
    let response;
    try {
      response = native[name](...args);
    } catch {
      // An argument of another type than declared is the caller's bug and throws.
      told[name].threw += 1;
      continue;
    }
    if (typeof response !== "number") throw new Error(`${name} returned a ${typeof response}`);
    told[name].answered += 1;
    if (name === "socketListen" && response > 0) closeSync(response);
    if (response > 0) told[name].positive += 1;
    if (MAKING.has(name) && response > 0) keep(name, response);
  }
  // If its thread exits without closing them, they end with it.
  if (!onlyWorkers) for (const thread of threads) native.ingressThreadClose(thread);
  return told;
}

function keep(name, handle) {
  handles[below(32)] = handle;
  if (name in latest) latest[name][below(3)] = handle;
  if (name === "ingressThreadStart") threads.add(handle);
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
