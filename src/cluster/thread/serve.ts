/**
 * Runs a cluster client on this thread for the main thread: what it learns is sent through an
 * outbox, and requests arrive as messages.
 */

import type { MessagePort } from "node:worker_threads";
import { systemClock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { createCoalescedClock } from "../../runtime/coalesced-timers.ts";
import { sharedCounters } from "../../runtime/shared-counters.ts";
import { createClusterClient } from "../cluster-client.ts";
import { CLUSTER_COUNTERS } from "../counters.ts";
import { REASON_CHARS_MAX } from "../limits.ts";
import {
  BUSY,
  type ClusterTask,
  type FromClusterThread,
  type ToClusterThread,
} from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { statusesMessage } from "./status-message.ts";
import { clipped } from "./text-lines.ts";

/** Serves until the main thread stops it; then nothing of it keeps the thread alive. */
export async function serveCluster(port: MessagePort, task: ClusterTask): Promise<void> {
  const { options } = task;
  const control = new Int32Array(task.control);
  const counters = sharedCounters(CLUSTER_COUNTERS, task.counters);
  const clock = systemClock;
  const outbox = new Outbox({ port, clock, counters, control });
  const hasGeyser = options.grpcUrl !== undefined && options.grpcUrl !== null;
  // Loads the library only where it is used.
  const geyser = hasGeyser ? await import("../geyser/stream.ts") : null;
  const client = createClusterClient(
    {
      clock,
      coalescedClock: createCoalescedClock(clock),
      log: outbox.log,
      sink: outbox,
      busy: () => Atomics.load(control, BUSY) === 1,
      openGeyser: geyser?.openGeyser ?? null,
      counters,
    },
    options,
  );
  port.on("message", (message: ToClusterThread) => {
    switch (message.kind) {
      case "statuses":
        void respond(outbox, message.id, async () =>
          statusesMessage(message.id, await client.fetchStatuses(message.signatures)),
        );
        break;
      case "blockhashChecks":
        void respond(outbox, message.id, async () => ({
          kind: "blockhashChecks",
          id: message.id,
          checks: await client.checkBlockhashes(message.blockhashes),
        }));
        break;
      case "epochResult":
        outbox.epochResult(message.id, message.isAccepted);
        break;
      case "wantBlockhashes":
        client.wantBlockhashes();
        break;
      case "pollContactsNow":
        client.pollContactsNow();
        break;
      case "identity":
        outbox.useIdentity(message.identity);
        break;
      case "stop":
        client.stop();
        port.close();
        break;
      default:
        message satisfies never;
    }
  });
  client.start();
  outbox.send({ kind: "started" });
}

/** Sends the response to a request, or why it failed. */
async function respond(
  outbox: Outbox,
  id: number,
  act: () => Promise<FromClusterThread>,
): Promise<void> {
  try {
    outbox.send(await act());
  } catch (error) {
    const reason = messageOf(error);
    outbox.send({ kind: "requestFailed", id, reason: clipped(reason, REASON_CHARS_MAX) });
  }
}
