/**
 * A process with only the native engine, and connections to all leaders of a cluster, opened a few
 * at a time on command. Notifies its parent when the engine runs and when all are warm.
 */

import { once } from "node:events";
import { chooseEngine } from "../../src/native/choose.ts";
import { freshIdentity } from "../../src/send/identity.ts";
import { createNativeTransport } from "../../src/send/native/transport-native.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../../src/send/portable/transport-quic-options.ts";
import { SENDER_DEFAULTS } from "../../src/send/sender.ts";

const log = { info() {}, warn() {}, error() {} };
/** Concurrent handshakes: the leaders share the processors with this process. */
const AT_A_TIME = 8;

const { native } = chooseEngine("native", log);
if (native === null) throw new Error("the native engine is needed");
const transport = createNativeTransport(
  { native, identity: freshIdentity(), log },
  {
    binds: ["127.0.0.1:0"],
    busyPollUs: 0,
    idleTimeoutMs: QUIC_TRANSPORT_DEFAULTS.idleTimeoutMs,
    keepAliveMs: SENDER_DEFAULTS.keepAliveMs,
    admissionTimeoutMs: 60_000,
    queuePerLeader: SENDER_DEFAULTS.queuePerLeader,
    deliveryTtlMs: SENDER_DEFAULTS.deliveryTtlMs,
  },
);
await transport.start();
// The loss of the parent ends this process too.
process.on("disconnect", () => process.exit(0));
process.on("SIGTERM", () => process.exit(0));
process.send?.("started");

const [addresses] = (await once(process, "message")) as [readonly string[]];
let ended = 0;
for (let from = 0; from < addresses.length; from += AT_A_TIME) {
  await Promise.all(addresses.slice(from, from + AT_A_TIME).map(connect));
}
process.send?.("warm");
setInterval(() => {
  // Exits, so that the bench does not measure a process that lost connections.
  if (ended > 0) process.exit(1);
}, 1_000);

function connect(address: string): Promise<void> {
  return new Promise((resolve) => {
    const connection = transport.connect(address, {
      progress() {
        if (connection?.admitted === true) resolve();
      },
      result() {},
      sentElsewhere() {},
      ended(cause) {
        ended += 1;
        console.error(`${address} ended: ${JSON.stringify(cause)}`);
        resolve();
      },
    });
  });
}
