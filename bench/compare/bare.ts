/**
 * The path with nothing on it: HTTP, decode, verify, send. No key, no limit, no look-up of
 * repetitions, no receipt, no metric, no route: what the features of an edge cost is the distance
 * to this. A process of its own: the leader's address, an identity file and a tip account are its
 * arguments, and it prints its address once the leader has admitted it.
 */

import * as uws from "uWebSockets.js";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeBase58 } from "../../src/core/encoding.ts";
import { RECORD_NUMBERS, VERDICT_NUMBERS } from "../../src/native/contract.ts";
import { loadNative } from "../../src/native/load.ts";
import { identityOfJson } from "../../src/send/identity.ts";

const ADMITTED = 3;
const KEYS_MAX = 512;
const TTL_MS = 800;

const [leader = "", identityFile = "", tipAccount = ""] = process.argv.slice(2);
const found = loadNative();
if (found.kind !== "loaded") throw new Error("the native engine is not built");
const { native } = found;

const tip = decodeBase58(tipAccount, 32);
if (tip === null) throw new Error("no tip account");
const decoder = native.decoderCreate(tip, 1_000_000, true, KEYS_MAX);
const records = new Float64Array(256 * RECORD_NUMBERS);
const engine = native.engineStart(
  {
    binds: ["0.0.0.0:0"],
    seed: identityOfJson(readFileSync(identityFile, "utf8")).seed,
    queueMax: 1024,
    inFlightMax: 4096,
    outcomesMax: 65_536,
    admissionTimeoutMs: 4000,
    idleTimeoutMs: 30_000,
    keepAliveMs: 1000,
    ackEvery: 10,
    ackDelayMs: 25,
    busyPollUs: 0,
  },
  () => {
    while (native.outcomesDrain(engine, records) === 256);
  },
);
const peer = native.peerOpen(engine, leader);
const figures = new Float64Array(8);
while (figures[0] !== ADMITTED) {
  await sleep(5);
  native.peerFigures(engine, peer, figures);
}

const copies = Uint32Array.of(peer, 0);
const verdict = new Float64Array(VERDICT_NUMBERS);
let tx = 0;

function pass(bytes: Uint8Array): string {
  tx += 1;
  const good =
    native.decode(decoder, bytes, verdict, 0) === 1 &&
    native.txSend(engine, copies, bytes, tx, TTL_MS) !== 0;
  return good ? '{"success":true}' : '{"error":"refused"}';
}

function take(judge: (body: ArrayBuffer) => Uint8Array) {
  return (response: uws.HttpResponse): void => {
    response.onAborted(() => undefined);
    // A request of the generator comes in one piece.
    response.onData((chunk) => {
      response.end(pass(judge(chunk)));
    });
  };
}

const app = uws.App();
app.post(
  "/api/v1/sendRawTransaction",
  take((body) => new Uint8Array(body)),
);
app.post(
  "/api/v1/sendTransaction",
  take((body) => Buffer.from(JSON.parse(Buffer.from(body).toString("latin1")).params[0], "base64")),
);
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("no port");
  process.stdout.write(`127.0.0.1:${uws.us_socket_local_port(socket)}\n`);
});
