/** What a front does by itself, and what it leaves to the main thread. */

import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { encodeSignature } from "../../src/core/encoding.ts";
import { createDecoder } from "../../src/decode/decoder.ts";
import {
  createRecordWriter,
  type FrontRecord,
  REFUSED,
  REPEATED,
  RecordReader,
  recordsMemory,
  SENT,
} from "../../src/front/records.ts";
import { createFrontSubmit } from "../../src/front/submit.ts";
import { createSeen } from "../../src/ingress/seen.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { keyOwner } from "../support/owners.ts";
import { DECODER, newPacket } from "../support/packets.ts";

const SLOTS = 4;

function rig() {
  const clock = createFakeClock();
  const memory = recordsMemory(SLOTS);
  const reader = new RecordReader(memory, SLOTS);
  const decoder = createDecoder(DECODER);
  const state = {
    sends: true,
    place: 5,
    decoded: 0,
    noted: 0,
    onWire: [] as Uint8Array[],
    isUrgent: false,
    isAwaited: false,
    heeded: [] as number[],
  };
  const seen = createSeen();
  const urgent: boolean[] = [];
  const awaited: boolean[] = [];
  const submit = createFrontSubmit({
    clock,
    seen,
    decode(bytes) {
      state.decoded += 1;
      return decoder.decode(bytes);
    },
    sender: {
      send(bytes, into) {
        if (!state.sends) return false;
        state.onWire.push(Uint8Array.from(bytes));
        into.version = 9;
        into.count = 1;
        into.mask = 1;
        into.streams[0] = state.onWire.length;
        return true;
      },
      get isUrgent() {
        return state.isUrgent;
      },
      heed(nowNs) {
        state.heeded.push(nowNs);
      },
      /** Of no use before the record is there. */
      get isAwaited() {
        return state.isAwaited && reader.depth > 0;
      },
    },
    records: createRecordWriter(memory, SLOTS),
    placeOf: () => state.place,
    nameOf: encodeSignature,
    onRecord(isUrgent, isAwaited = false) {
      state.noted += 1;
      urgent.push(isUrgent);
      awaited.push(isAwaited);
    },
  });
  const owner = keyOwner("acme", { name: "P", ratePerSecond: 1, burst: 1, shared: false });
  const give = (bytes: Uint8Array) =>
    submit({
      bytes,
      owner,
      receivedNs: clock.nowNs(),
      bodyBytes: 99,
      maxRetries: null,
    });
  const records = (): FrontRecord[] => {
    const all: FrontRecord[] = [];
    const copy = (record: FrontRecord): void => {
      all.push({ ...record, bytes: Uint8Array.from(record.bytes) });
    };
    while (reader.read(copy));
    return all;
  };
  return { clock, state, seen, urgent, awaited, give, records };
}

describe("a front", () => {
  it("sends what verifies, answers its signature and tells of it", () => {
    const { state, give, records } = rig();
    const { bytes } = newPacket(1);
    const answer = give(bytes);
    expect(answer).toEqual({ kind: "accepted", signature: encodeSignature(bytes, 1) });
    expect(state.onWire).toEqual([Uint8Array.from(bytes)]);
    const [record] = records();
    expect(record).toMatchObject({ kind: SENT, place: 5, bodyBytes: 99 });
    expect(record?.send).toMatchObject({ version: 9, count: 1, mask: 1 });
    expect(state.noted).toBe(1);
  });

  it("has the main thread hear at once of what its sender says so of, and of nothing else", () => {
    const { state, give, urgent, awaited } = rig();
    give(newPacket(1).bytes);
    state.isUrgent = true;
    state.isAwaited = true;
    give(newPacket(2).bytes);
    give(newPacket(2).bytes);
    const broken = Uint8Array.from(newPacket(3).bytes);
    broken[3] = (broken[3] ?? 0) ^ 1;
    give(broken);
    expect(urgent).toEqual([false, true, false, false]);
    expect(awaited).toEqual([false, true, false, false]);
  });

  it("answers a repetition without decoding or sending, and tells of it", () => {
    const { state, give, records } = rig();
    const { bytes } = newPacket(1);
    const answers = [give(bytes), give(bytes)];
    expect(answers[1]).toEqual(answers[0]);
    expect(state).toMatchObject({ decoded: 1, noted: 2 });
    expect(state.onWire).toHaveLength(1);
    expect(records().map(({ kind }) => kind)).toEqual([SENT, REPEATED]);
  });

  it("refuses what does not verify, and tells of it", () => {
    const { state, give, records } = rig();
    const bytes = Uint8Array.from(newPacket(1).bytes);
    bytes[3] = (bytes[3] ?? 0) ^ 1;
    expect(give(bytes)).toMatchObject({ kind: "refused" });
    expect(state.onWire).toEqual([]);
    expect(records()).toMatchObject([{ kind: REFUSED, verdict: { kind: "refused" } }]);
  });

  it("has what was held for long leave before it takes another", () => {
    const { clock, state, give } = rig();
    state.sends = false;
    give(newPacket(1).bytes);
    state.place = -1;
    clock.advance(1);
    give(newPacket(2).bytes);
    expect(state.heeded).toEqual([clock.nowNs() - NS_PER_MS, clock.nowNs()]);
  });

  it("declines what another thread has at this moment: it may not be accepted there", () => {
    const { state, seen, give, records } = rig();
    const { bytes } = newPacket(1);
    seen.claim(bytes, 1, 0);
    expect(give(bytes)).toBe("other");
    expect([records(), state.onWire]).toEqual([[], []]);
    seen.confirm(bytes, 1);
    expect(give(bytes)).toMatchObject({ kind: "accepted" });
    expect(records()).toMatchObject([{ kind: REPEATED }]);
  });

  it("declines where leaders are not clear, leaving no trace", () => {
    const { state, give, records } = rig();
    const { bytes } = newPacket(1);
    state.sends = false;
    expect(give(bytes)).toBe("leaders");
    expect(records()).toEqual([]);
    state.sends = true;
    expect(give(bytes)).toMatchObject({ kind: "accepted" });
    expect(state.onWire).toHaveLength(1);
  });

  it("declines before it does anything where the books have no room, or the pass is gone", () => {
    const { state, give } = rig();
    const bytes = Array.from({ length: SLOTS + 1 }, (_, index) => newPacket(index).bytes);
    for (const each of bytes.slice(0, SLOTS))
      expect(give(each)).toMatchObject({ kind: "accepted" });
    expect(give(bytes[SLOTS] ?? new Uint8Array())).toBe("books");
    expect(state.decoded).toBe(SLOTS);
    const other = rig();
    other.state.place = -1;
    expect(other.give(newPacket(1).bytes)).toBe("key");
    expect(other.state.decoded).toBe(0);
  });
});
