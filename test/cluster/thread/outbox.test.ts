import { describe, expect, it } from "vitest";
import { ClusterCounters } from "../../../src/cluster/counters.ts";
import {
  BLOCKHASHES_KEPT,
  LANDINGS_PER_MESSAGE_MAX,
  REASON_CHARS_MAX,
  SCHEDULE_LEADERS_MAX,
  UPDATES_UNREAD_MAX,
} from "../../../src/cluster/limits.ts";
import {
  CONTROL_WORDS,
  type FromClusterThread,
  READ,
} from "../../../src/cluster/thread/messages.ts";
import { Outbox } from "../../../src/cluster/thread/outbox.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function setUp() {
  const sent: FromClusterThread[] = [];
  const counters = new ClusterCounters();
  const control = new Int32Array(new SharedArrayBuffer(4 * CONTROL_WORDS));
  const port = { postMessage: (message: FromClusterThread) => void sent.push(message) };
  const outbox = new Outbox({ port, clock: createFakeClock(), counters, control });
  return { sent, counters, control, outbox };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const signature = (byte: number): Uint8Array => new Uint8Array(64).fill(byte);

describe("slot events", () => {
  it("are sent immediately, and dropped and counted while too many are unread", () => {
    const { sent, counters, control, outbox } = setUp();
    for (let slot = 0; slot < UPDATES_UNREAD_MAX + 2; slot += 1) {
      outbox.slotEvent("start", slot, "slot");
    }
    expect([sent.length, counters.slotEventsLost]).toEqual([UPDATES_UNREAD_MAX, 2]);
    expect(sent[1]).toEqual({ kind: "slot", event: "start", slot: 1, source: "slot" });
    Atomics.add(control, READ, 1);
    outbox.slotEvent("end", 99, "slot");
    outbox.slotEvent("end", 100, "slot");
    expect(sent.at(-1)).toMatchObject({ slot: 99 });
    expect([sent.length, counters.slotEventsLost]).toEqual([UPDATES_UNREAD_MAX + 1, 3]);
  });

  it("do not displace what must arrive", () => {
    const { sent, outbox } = setUp();
    for (let slot = 0; slot <= UPDATES_UNREAD_MAX; slot += 1) outbox.slotEvent("end", slot, "slot");
    outbox.setHeight(7, 1);
    outbox.slotTimeHint(400);
    outbox.forgetEpochs();
    outbox.setReporting("no");
    outbox.setConsensus("alpenglow");
    outbox.setConfirmationStalled(true);
    expect(sent.slice(UPDATES_UNREAD_MAX)).toEqual([
      { kind: "height", height: 7, sinceNs: 1 },
      { kind: "slotTime", slotTimeMs: 400 },
      { kind: "forgetEpochs" },
      { kind: "reporting", reporting: "no" },
      { kind: "consensus", consensus: "alpenglow" },
      { kind: "confirmationStalled", isStalled: true },
    ]);
  });
});

describe("landings", () => {
  it("of one turn are one message, with copies of their signatures", async () => {
    const { sent, outbox } = setUp();
    const borrowed = signature(1);
    outbox.processed(borrowed, 5, null, null);
    borrowed.fill(0);
    outbox.processed(signature(2), 6, '"x"', 60);
    expect(sent).toEqual([]);
    await turn();
    const signatures = Uint8Array.from([...signature(1), ...signature(2)]);
    const slots = Float64Array.of(5, 6);
    const banks = Float64Array.of(-1, 60);
    expect(sent).toEqual([{ kind: "processed", signatures, slots, banks, errors: [null, '"x"'] }]);
  });

  it("come before the ids of banks change, which is sent whatever is unread", async () => {
    const { sent, outbox } = setUp();
    outbox.processed(signature(1), 5, null, 50);
    outbox.forgetBanks();
    await turn();
    for (let slot = 0; slot < UPDATES_UNREAD_MAX; slot += 1) outbox.confirmed(slot, 50);
    outbox.processed(signature(1), 5, null, 50);
    outbox.forgetBanks();
    await turn();
    expect(sent.map(({ kind }) => kind)).toEqual([
      "processed",
      "forgetBanks",
      ...new Array(UPDATES_UNREAD_MAX - 1).fill("confirmed"),
      "forgetBanks",
    ]);
    expect(sent[2]).toEqual({ kind: "confirmed", slot: 0, bank: 50 });
  });

  it("come before the confirmation of their block, and at most so many in a message", async () => {
    const { sent, outbox } = setUp();
    for (let index = 0; index <= LANDINGS_PER_MESSAGE_MAX; index += 1) {
      outbox.processed(signature(1), 5, null, null);
    }
    outbox.confirmed(5, null);
    await turn();
    const sizes = sent.map((each) => (each.kind === "processed" ? each.slots.length : each.kind));
    expect(sizes).toEqual([LANDINGS_PER_MESSAGE_MAX, 1, "confirmed"]);
  });

  it("and confirmations are dropped and counted while too much is unread", () => {
    const { sent, counters, outbox } = setUp();
    for (let slot = 0; slot < UPDATES_UNREAD_MAX; slot += 1) outbox.confirmed(slot, null);
    outbox.processed(signature(1), 5, null, null);
    outbox.processed(signature(1), 5, null, null);
    outbox.confirmed(5, null);
    expect([sent.length, counters.geyserLost]).toEqual([UPDATES_UNREAD_MAX, 3]);
  });
});

describe("blockhashes", () => {
  const hash = (index: number): Uint8Array => new Uint8Array(32).fill(index);

  it("are one message a turn, complete when all were read", async () => {
    const { sent, outbox } = setUp();
    outbox.addBlockhash(hash(1), 150);
    await turn();
    outbox.blockhashesRead();
    outbox.addBlockhash(hash(1), 150);
    outbox.addBlockhash(hash(2), 151);
    await turn();
    const both = { hashes: Uint8Array.from([...hash(1), ...hash(2)]) };
    const lastValidHeights = Float64Array.of(150, 151);
    expect(sent).toEqual([
      {
        kind: "blockhashes",
        hashes: hash(1),
        lastValidHeights: Float64Array.of(150),
        isComplete: false,
      },
      { kind: "blockhashes", ...both, lastValidHeights, isComplete: true },
    ]);
  });

  it("are the newest BLOCKHASHES_KEPT of a list of any length", async () => {
    const { sent, outbox } = setUp();
    outbox.blockhashesRead();
    const count = 5 * BLOCKHASHES_KEPT;
    for (let index = 0; index < count; index += 1) outbox.addBlockhash(hash(index), index);
    await turn();
    const [message] = sent;
    const heights = message?.kind === "blockhashes" ? message.lastValidHeights : [];
    expect([heights.length, heights.at(0), heights.at(-1)]).toEqual([
      BLOCKHASHES_KEPT,
      count - BLOCKHASHES_KEPT,
      count - 1,
    ]);
  });

  it("alone are dropped while too much is unread; a complete list is not", async () => {
    const { sent, outbox } = setUp();
    for (let slot = 0; slot < UPDATES_UNREAD_MAX; slot += 1) outbox.confirmed(slot, null);
    outbox.addBlockhash(hash(1), 150);
    await turn();
    expect(sent).toHaveLength(UPDATES_UNREAD_MAX);
    outbox.blockhashesRead();
    await turn();
    expect(sent).toHaveLength(UPDATES_UNREAD_MAX + 1);
  });
});

describe("a schedule", () => {
  it("is accepted or rejected by the main thread", async () => {
    const { sent, outbox } = setUp();
    const leaders = new Map([["a", [0, 1]]]);
    const results = [7, 8].map((epoch) =>
      outbox.setEpoch({ epoch, firstSlot: 0, slots: 4, leaders }),
    );
    expect(sent.map((each) => each.kind === "epoch" && [each.id, each.epoch])).toEqual([
      [0, 7],
      [1, 8],
    ]);
    outbox.epochResult(1, false);
    outbox.epochResult(0, true);
    expect(await Promise.all(results)).toEqual([true, false]);
  });

  it("that is too large is rejected and not sent", () => {
    const { sent, outbox } = setUp();
    const many = Array.from({ length: SCHEDULE_LEADERS_MAX + 1 }, (_, index) => String(index));
    const leaders = new Map(many.map((name) => [name, []]));
    expect(outbox.setEpoch({ epoch: 1, firstSlot: 0, slots: 432_000, leaders })).toBe(false);
    expect(sent).toEqual([]);
  });
});

describe("the stake of the edge's identity", () => {
  it("is sent once both are known, and again when either changes", () => {
    const { sent, outbox } = setUp();
    outbox.setStakes(new Map([["a", 5]]));
    expect(sent).toEqual([]);
    outbox.useIdentity("a");
    outbox.setStakes(new Map([["a", 6]]));
    outbox.useIdentity("b");
    expect(sent).toEqual([
      { kind: "stake", identity: "a", lamports: 5 },
      { kind: "stake", identity: "a", lamports: 6 },
      { kind: "stake", identity: "b", lamports: 0 },
    ]);
  });
});

describe("lists and texts", () => {
  it("skip identities that are too long, and cut off log entries", () => {
    const { sent, outbox } = setUp();
    outbox.setDelinquent(["a", "b".repeat(65), "c\n", "d"]);
    outbox.log.warn({ reason: "x".repeat(9_999), epoch: 7 }, "text");
    expect(sent).toEqual([
      { kind: "delinquent", identities: "a\nd" },
      {
        kind: "log",
        level: "warn",
        fields: { reason: `${"x".repeat(REASON_CHARS_MAX)}…`, epoch: 7 },
        message: "text",
      },
    ]);
  });
});
