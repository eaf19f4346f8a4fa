/**
 * Runs a cluster client against the given URLs and stops it; the test checks that the process then
 * exits automatically after it printed "stopped".
 */

import { createServer } from "node:net";
import { createClusterClient } from "../../src/cluster/cluster-client.ts";
import { openGeyser } from "../../src/cluster/geyser/stream.ts";
import { systemClock } from "../../src/core/clock.ts";
import { clientDeps, sinkOf } from "./fixture.ts";

const [rpcUrl = "", wsUrl = "", when = ""] = process.argv.slice(2);
const deps = clientDeps(systemClock, sinkOf({}), openGeyser);
const client = createClusterClient(deps, {
  rpcUrl,
  wsUrl,
  silenceMs: 400,
  pollMs: 100,
  retryMsFirst: 50,
  retryMsMax: 100,
});
client.start();

// The clock's timers do not keep the process running; this server does until the client has run.
const keepAlive = createServer().listen(0, "127.0.0.1");
const check = systemClock.every(20, () => {
  const { counters } = deps;
  const done =
    when === "while it runs"
      ? counters.slotEvents > 3 && counters.contactFetches > 0
      : counters.socketsClosed > 2 && counters.slotPollFailures > 1;
  if (!done) return;
  check.cancel();
  keepAlive.close();
  client.stop();
  process.stdout.write("stopped\n");
});
