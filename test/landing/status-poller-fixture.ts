/** A status poller alone, on a fake clock. */

import { encodeSignatures } from "../../src/core/encoding.ts";
import type { Packet } from "../../src/core/flow.ts";
import { InFlightTable } from "../../src/landing/in-flight-table.ts";
import { LandCounters } from "../../src/landing/land-counters.ts";
import type { StatusResponse } from "../../src/landing/ports.ts";
import { StatusPoller } from "../../src/landing/status-polling.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { ACCEPTED, bytesOf } from "./fixture.ts";

export function packetOf(id: number): Packet {
  const bytes = bytesOf(id);
  return { id, bytes, account: "a", receivedNs: 0, maxRetries: null, offeredLamports: 0 };
}

/**
 * `count` transactions in flight, none of them in a block; counts the checks per turn. Unfinished
 * work continues after `turnMs`.
 */
export function startPoller(count: number, turnMs = 0) {
  const clock = createFakeClock();
  const table = new InFlightTable(count, count * 1_000);
  const seen = {
    looks: 0,
    inATurn: [] as number[],
    asked: [] as Uint8Array[],
    answer: async (signatures: Uint8Array): Promise<StatusResponse> => ({
      slot: 1,
      statuses: encodeSignatures(signatures).map(() => null),
    }),
    /** Called after each turn with checks. */
    onTurn() {},
  };
  const turn = (act: () => void) => (): void => {
    const before = seen.looks;
    act();
    if (seen.looks === before) return;
    seen.inATurn.push(seen.looks - before);
    seen.onTurn();
  };
  const poller = new StatusPoller(
    {
      clock: {
        ...clock,
        after: (delayMs, act) => clock.after(delayMs === 0 ? turnMs : delayMs, turn(act)),
        every: (periodMs, act) => clock.every(periodMs, turn(act)),
      },
      table,
      counters: new LandCounters(),
      cluster: {
        fetchStatuses(signatures) {
          seen.asked.push(signatures);
          return seen.answer(signatures);
        },
      },
      onTick() {},
      onCheck() {
        seen.looks += 1;
        return true;
      },
      stamp: () => 0,
      onStatus() {},
    },
    400,
  );
  poller.start();
  for (let id = 1; id <= count; id += 1) {
    const row = table.open(packetOf(id), ACCEPTED);
    table.nextPollNs[row] = poller.firstNs(clock.nowNs());
  }
  return { clock, table, poller, seen };
}
