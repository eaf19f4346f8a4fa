/**
 * The minimal path: HTTP, decode, verify, send, without keys, limits, dedup cache, receipts,
 * metrics or routes. The difference between an edge and this path is the cost of the edge's
 * features. It is a separate process; its arguments are the leader's address, an identity file and
 * a tip account, and it prints its address once the leader has admitted it.
 *
 * A fourth argument disables signature verification, as the incumbents have none. Everything runs
 * on the HTTP thread.
 */

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeBase58 } from "../../src/core/encoding.ts";
import * as uws from "../../src/http/uws.ts";
import { EVENT_NUMBERS, VALIDATION_NUMBERS } from "../../src/native/contract.ts";
import { loadNative } from "../../src/native/load.ts";
import { identityOfJson } from "../../src/send/identity.ts";
import { SENDER_DEFAULTS } from "../../src/send/sender.ts";

const ADMITTED = 3;
const KEYS_MAX = 512;
const TTL_MS = 800;
const UNVERIFIED = "bare unverified";

const [leader = "", identityFile = "", tipAccount = "", variant = ""] = process.argv.slice(2);
const found = loadNative();
if (found.kind !== "loaded") throw new Error("the native engine is not built");
const { native } = found;

const tip = decodeBase58(tipAccount, 32);
if (tip === null) throw new Error("no tip account");
const decoder = native.decoderCreate(tip, 1_000_000, variant !== UNVERIFIED, KEYS_MAX);
const records = new Float64Array(256 * EVENT_NUMBERS);
const engine = native.engineStart(
  {
    binds: ["0.0.0.0:0"],
    seed: identityOfJson(readFileSync(identityFile, "utf8")).seed,
    // The capacity of the incumbent's channel.
    queueMax: 4096,
    inFlightMax: 4096,
    admissionTimeoutMs: 4000,
    idleTimeoutMs: 30_000,
    // As in an edge.
    keepAliveMs: SENDER_DEFAULTS.keepAliveMs,
    busyPollUs: 0,
  },
  () => {
    while (native.eventsDrain(engine, records) === 256);
  },
);
const peer = native.peerOpen(engine, leader);
const stats = new Float64Array(16);
while (stats[0] !== ADMITTED) {
  await sleep(5);
  native.peerStats(engine, peer, stats);
}

const deliveries = Uint32Array.of(peer, 0);
const validation = new Float64Array(VALIDATION_NUMBERS);
let tx = 0;

function send(bytes: Uint8Array): boolean {
  tx += 1;
  return native.txSend(engine, deliveries, bytes, tx, TTL_MS, 0, 0) !== 0;
}

function take(decodeBody: (body: ArrayBuffer) => Uint8Array) {
  return (response: uws.HttpResponse): void => {
    let isOpen = true;
    response.onAborted(() => {
      isOpen = false;
    });
    // The generator sends each request in one piece.
    response.onData((chunk) => {
      const bytes = decodeBody(chunk);
      const isGood = native.decode(decoder, bytes, validation, 0) === 1 && send(bytes);
      if (!isOpen) return;
      response.cork(() => {
        response.end(isGood ? '{"success":true}' : '{"error":"refused"}');
      });
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
