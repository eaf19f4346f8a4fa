import { describe, expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import type { Outcome } from "../../src/core/flow.ts";
import {
  connectReceipts,
  createReceiptExporter,
  createReceiptImporter,
  type ReceiptImporter,
  type ReceiptMessage,
} from "../../src/edge/handover-receipts.ts";
import { CATCH_UP_MS_MAX, RECEIPTS_PER_SLICE, RECEIPTS_ROUND_MS } from "../../src/edge/limits.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { ACCEPTED } from "../support/accepted.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function transaction(number: number) {
  const bytes = new Uint8Array(165);
  new DataView(bytes.buffer).setUint32(1, number);
  bytes[64] = number & 0xff;
  return { bytes, signature: encodeSignature(bytes, 1) };
}

/** The receipts of one process. */
function edge(clock = createFakeClock(), entriesMax = 2_000) {
  const receipts = createReceipts({ clock, slot: () => 390 }, { keepMs: 60_000, entriesMax });
  let id = 0;
  const numbers: number[] = [];
  return {
    receipts,
    accept(number: number, account = "acme"): number {
      id += 1;
      numbers[id] = number;
      const { bytes } = transaction(number);
      const receivedNs = clock.nowNs();
      const packet = { id, bytes, account, receivedNs, maxRetries: null, offeredLamports: 7_000 };
      receipts.open(packet, ACCEPTED, receivedNs + 30_000);
      return id;
    },
    outcome(packetId: number, kind: Outcome["kind"], more: Partial<Outcome> = {}): void {
      receipts.record({
        ...{ packetId, identity: "LeaderA", address: "127.0.0.1:8009", slot: 400, kind },
        ...{ reason: null, atNs: clock.nowNs(), rttUs: 900, connectionAgeMs: 5, resend: 0 },
        ...more,
      });
    },
    land(packetId: number, error: string | null = null): void {
      const end = { kind: "landed", slot: 402, slotDelta: 12, reason: null } as const;
      const { bytes } = transaction(numbers[packetId] ?? 0);
      receipts.end({ packetId, ...end, error, atNs: clock.nowNs() }, bytes.subarray(1, 65));
    },
    find: (number: number, account = "acme") =>
      receipts.find(transaction(number).signature, account),
    /** The states of the changes from a number on. */
    statesFrom(from: number, account = "acme"): readonly string[] {
      const states: string[] = [];
      receipts.readChanges(account, from, { states: null, stepsMax: 10_000 }, (_, receipt) => {
        states.push(receipt.state);
        return true;
      });
      return states;
    },
  };
}

/** A process and its successor, whose messages arrive at once. */
function handover() {
  const clock = createFakeClock();
  const [old, next] = [edge(clock), edge(clock)];
  const exporter = createReceiptExporter({ clock, receipts: old.receipts, flushEvents() {} });
  const asked: number[] = [];
  const { transfer } = next.receipts;
  const importer = createReceiptImporter(clock, transfer, (number) => void asked.push(number));
  const slices: number[] = [];
  const send = async (message: ReceiptMessage): Promise<void> => {
    if (message.kind === "slice") slices.push(message.slice.count);
    // As over the channel: a copy.
    importer.receive(structuredClone(message));
  };
  return { clock, old, next, exporter, importer, asked, slices, send };
}

const pause = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the receipts of a replaced process", () => {
  it("are all known to the successor, with everything in them, in slices", async () => {
    const { clock, old, next, exporter, slices, send } = handover();
    const count = 2 * RECEIPTS_PER_SLICE + 1;
    for (let number = 0; number < count; number += 1) {
      const id = old.accept(number, `account ${number % 3}`);
      clock.advance(1);
      old.outcome(id, "sent");
      old.outcome(id, "sent", { identity: "LeaderB", resend: 1 });
      old.outcome(id, "acked");
      if (number % 2 === 0) old.outcome(id, "failed", { identity: "LeaderB", resend: 1 });
      if (number % 3 === 0) old.land(id, '{"InstructionError":[0,{"Custom":1}]}');
    }
    old.accept(0, "other");
    await exporter.start(send);
    for (let number = 0; number < count; number += 1) {
      const account = `account ${number % 3}`;
      expect(next.find(number, account)).toEqual(old.find(number, account));
    }
    expect(next.find(0, "other")).not.toBeNull();
    expect(next.find(1, "other")).toBeNull();
    expect(slices).toEqual([RECEIPTS_PER_SLICE, RECEIPTS_PER_SLICE, 1]);
    const query = { states: null, limit: 10, before: null };
    expect(next.receipts.list("account 1", query)).toEqual(old.receipts.list("account 1", query));
    exporter.stop();
  });

  it("are followed while they change, until the old process ends", async () => {
    const { clock, old, next, exporter, send } = handover();
    const first = old.accept(1);
    await exporter.start(send);
    const second = old.accept(2);
    old.outcome(first, "sent");
    clock.advance(RECEIPTS_ROUND_MS);
    await pause();
    expect(next.find(1)?.state).toBe("sent");
    expect(next.find(2)?.state).toBe("accepted");
    old.land(second);
    await exporter.finish();
    expect(next.find(2)?.landing.state).toBe("landed");
    expect(clock.pending).toBe(0);
  });

  it("reach the successor with what changes no state, and no stream reports that", async () => {
    const { clock, old, next, exporter, send } = handover();
    const id = old.accept(1);
    const leaderB = { identity: "LeaderB", address: "127.0.0.1:8010" };
    old.outcome(id, "sent");
    old.outcome(id, "sent", leaderB);
    old.outcome(id, "acked");
    const landed = old.accept(2);
    old.land(landed);
    old.accept(3);
    await exporter.start(send);
    exporter.retired();
    await pause();
    old.outcome(id, "acked", leaderB);
    // A repetition, which is not sent again, and those that are: of one that landed, and in flight.
    old.receipts.addSubmitter(transaction(1).bytes, 1, "other");
    old.accept(2, "other");
    old.accept(3, "other");
    clock.advance(RECEIPTS_ROUND_MS);
    await pause();
    for (const number of [1, 2, 3]) {
      for (const account of ["acme", "other"]) {
        expect(next.find(number, account)).not.toBeNull();
        expect(next.find(number, account)).toEqual(old.find(number, account));
      }
    }
    expect(next.find(1)?.leaders.map(({ state }) => state)).toEqual(["acked", "acked"]);
    expect([next.statesFrom(1), next.statesFrom(1, "other")]).toEqual([[], []]);
    old.land(id);
    await exporter.finish();
    expect([next.statesFrom(1), next.statesFrom(1, "other")]).toEqual([["landed"], ["landed"]]);
    // Nothing is logged for a successor that is gone.
    const { next: number } = old.receipts.changes;
    old.receipts.addSubmitter(transaction(1).bytes, 1, "other");
    expect(old.receipts.changes.next).toBe(number);
  });

  it("join those of the successor, which keeps its own deliveries", async () => {
    const { clock, old, next, exporter, send } = handover();
    const oldId = old.accept(1);
    old.outcome(oldId, "sent");
    await exporter.start(send);
    const id = next.accept(1);
    next.outcome(id, "sent", { identity: "LeaderC" });
    const before = next.find(1);
    expect(before?.submissions).toBe(2);
    old.outcome(oldId, "acked");
    clock.advance(RECEIPTS_ROUND_MS);
    await pause();
    expect(next.find(1)).toEqual(before);
    old.land(oldId);
    await exporter.finish();
    expect(next.find(1)?.landing).toMatchObject({ state: "landed", slot: 402 });
    expect(next.find(1)?.leaders).toEqual(before?.leaders);
  });

  it("make room for each other as those of one process do", async () => {
    const clock = createFakeClock();
    const [old, next] = [edge(clock), edge(clock, 3)];
    for (let number = 1; number <= 5; number += 1) old.accept(number);
    const exporter = createReceiptExporter({ clock, receipts: old.receipts, flushEvents() {} });
    const importer = createReceiptImporter(clock, next.receipts.transfer, () => {});
    await exporter.start(async (message) => importer.receive(message));
    expect([1, 2, 3, 4, 5].map((number) => next.find(number) !== null)).toEqual([
      ...[false, false, true, true, true],
    ]);
    exporter.stop();
  });
});

describe("the changes of receipts", () => {
  it("continue in the successor where the streams of the old process ended", async () => {
    const { old, next, exporter, importer, send } = handover();
    const first = old.accept(1);
    await exporter.start(send);
    old.outcome(first, "sent");
    const { log } = next.receipts.transfer;
    // The successor serves, and the old process's streams are told one more change.
    next.accept(2);
    old.outcome(first, "acked");
    exporter.retired();
    const last = old.receipts.changes.next - 1;
    await pause();
    expect(log.epoch).toBe(old.receipts.transfer.log.epoch);
    const resumed = log.after(last);
    expect(resumed).toBe(log.first);
    expect(next.statesFrom(resumed)).toEqual(["accepted"]);
    // What happens later is told by the successor.
    old.land(first);
    await exporter.finish();
    expect(next.statesFrom(resumed)).toEqual(["accepted", "landed"]);
    // A reader that missed changes of the old process is told of a gap.
    expect(log.after(last - 1)).toBeLessThan(log.first);
    // And one of the successor's own continues with the next.
    expect(log.after(resumed)).toBe(resumed + 1);
    // The end of the old process changes none of it.
    importer.ended();
    expect([log.after(last), log.after(last - 1)]).toEqual([log.first, last]);
  });

  /** Receipts of two slices. A leader acknowledges the last one while the first slice is sent. */
  async function slicesWithAChange() {
    const { clock, old, next, exporter, send } = handover();
    const ids = Array.from({ length: 2 * RECEIPTS_PER_SLICE }, (_, number) => old.accept(number));
    const last = ids.at(-1) ?? 0;
    let isAwaited = false;
    await exporter.start(async (message) => {
      await send(message);
      if (isAwaited && message.kind === "slice") old.outcome(last, "acked");
      isAwaited &&= message.kind !== "slice";
    });
    return {
      exporter,
      change(): void {
        for (const id of ids) old.outcome(id, "sent");
        isAwaited = true;
      },
      land: () => old.land(last),
      async rounds(count: number): Promise<void> {
        for (let round = 0; round < count; round += 1) {
          clock.advance(RECEIPTS_ROUND_MS);
          await pause();
        }
      },
      /** The states that the successor tells streams, without `sent`. */
      told: () => next.statesFrom(1).filter((state) => state !== "sent"),
    };
  }

  it("are told once, although two slices hold the same state", async () => {
    const { exporter, change, rounds, land, told } = await slicesWithAChange();
    exporter.retired();
    await pause();
    change();
    await rounds(2);
    land();
    await exporter.finish();
    expect(told()).toEqual(["acknowledged", "landed"]);
  });

  it("are told after the old process retired, although an earlier slice had them", async () => {
    const { exporter, change, rounds, told } = await slicesWithAChange();
    change();
    exporter.retired();
    await pause();
    expect(told()).toEqual([]);
    await rounds(1);
    exporter.stop();
    expect(told()).toEqual(["acknowledged"]);
  });

  it("may have been missed where the old process ended without a word", async () => {
    const { next, exporter, importer, send } = handover();
    await exporter.start(send);
    const { log } = next.receipts.transfer;
    expect(log.isAfterKnown(0)).toBe(false);
    importer.ended();
    expect([log.isAfterKnown(0), log.after(0)]).toEqual([true, 1]);
    expect(log.first).toBeGreaterThan(1);
    exporter.stop();
  });

  it("are not ended by a message of another version", async () => {
    const { next, exporter, importer, send } = handover();
    await exporter.start(send);
    const { log } = next.receipts.transfer;
    next.accept(1);
    const before = log.after(0);
    importer.receive(JSON.parse('{"kind":"later","last":0}'));
    expect(log.after(0)).toBe(before);
    exporter.stop();
  });

  it("follow a second successor too", async () => {
    const { clock, next, exporter, send } = handover();
    await exporter.start(send);
    exporter.retired();
    await exporter.finish();
    const third = edge(clock);
    next.accept(1);
    const again = createReceiptExporter({ clock, receipts: next.receipts, flushEvents() {} });
    const importer = createReceiptImporter(clock, third.receipts.transfer, () => {});
    await again.start(async (message) => importer.receive(message));
    again.retired();
    await again.finish();
    expect(third.receipts.changes.first).toBeGreaterThan(next.receipts.changes.next);
    expect(third.find(1)).not.toBeNull();
  });

  it("reach a second successor also where they change no state", async () => {
    const { clock, old, next, exporter, send } = handover();
    old.accept(1);
    await exporter.start(send);
    exporter.retired();
    await pause();
    const third = edge(clock);
    const again = createReceiptExporter({ clock, receipts: next.receipts, flushEvents() {} });
    const importer = createReceiptImporter(clock, third.receipts.transfer, () => {});
    await again.start(async (message) => importer.receive(structuredClone(message)));
    old.receipts.addSubmitter(transaction(1).bytes, 1, "other");
    await exporter.finish();
    await again.finish();
    expect(third.find(1, "other")).toEqual(old.find(1, "other"));
    expect(third.find(1, "other")).not.toBeNull();
  });
});

describe("a successor without a receipt", () => {
  it("asks the old process, which sends all that it knows first", async () => {
    const { old, next, exporter, asked, send } = handover();
    await exporter.start(send);
    old.accept(1);
    expect(next.find(1)).toBeNull();
    const caughtUp = next.receipts.catchUp?.();
    expect(asked).toEqual([1]);
    exporter.asked(1);
    await caughtUp;
    expect(next.find(1)).not.toBeNull();
    exporter.stop();
  });

  it("waits a bounded time, and not for a process that has ended", async () => {
    const { clock, next, importer } = handover();
    const late = next.receipts.catchUp?.();
    clock.advance(CATCH_UP_MS_MAX);
    await late;
    const last = next.receipts.catchUp?.();
    importer.ended();
    await last;
    expect(next.receipts.catchUp?.()).toBeNull();
    expect(edge().receipts.catchUp?.()).toBeNull();
    expect(clock.pending).toBe(0);
  });
});

it("a successor that is gone is sent nothing more", async () => {
  const { clock, old, exporter } = handover();
  old.accept(1);
  let sent = 0;
  await exporter.start(async () => {
    sent += 1;
    throw new Error("gone");
  });
  old.accept(2);
  clock.advance(RECEIPTS_ROUND_MS);
  await exporter.finish();
  expect(sent).toBe(1);
  expect(clock.pending).toBe(0);
});

describe("a second successor, after one that failed while it was sent receipts", () => {
  /** A first successor whose channel is full from its second message on, until `end`. */
  async function withFirst() {
    const parts = handover();
    const { clock, old, exporter, send } = parts;
    old.accept(1);
    let end = (): void => {};
    const full = new Promise<void>((_, reject) => {
      end = () => reject(new Error("gone"));
    });
    let messages = 0;
    const first = exporter.start(() => {
      messages += 1;
      return messages === 1 ? Promise.resolve() : full;
    });
    await pause();
    clock.advance(RECEIPTS_ROUND_MS);
    return { ...parts, end, first, second: () => exporter.start(send) };
  }

  it("is told what changes from then on", async () => {
    const { clock, old, next, exporter, end, first, second } = await withFirst();
    end();
    await first;
    exporter.stop();
    await second();
    old.land(1);
    clock.advance(RECEIPTS_ROUND_MS);
    await pause();
    expect(next.find(1)?.state).toBe("landed");
    await exporter.finish();
    expect(clock.pending).toBe(0);
  });

  it("is sent all receipts, also if the first one's end shows only later", async () => {
    const { clock, old, next, exporter, end, second } = await withFirst();
    exporter.stop();
    const all = second();
    end();
    await all;
    expect(next.find(1)?.state).toBe("accepted");
    old.land(1);
    await exporter.finish();
    expect(next.find(1)?.state).toBe("landed");
    expect(clock.pending).toBe(0);
  });
});

it("an edge receives the receipts of its predecessor alone", () => {
  const clock = createFakeClock();
  const { receipts } = edge(clock);
  const deps = { clock, receipts, flushEvents() {} };
  connectReceipts(null, deps);
  expect(receipts.catchUp?.()).toBeNull();
  const importers: ReceiptImporter[] = [];
  connectReceipts({ connectReceipts: (create) => void importers.push(create(() => {})) }, deps);
  expect(importers).toHaveLength(1);
  expect(receipts.catchUp?.()).not.toBeNull();
});
