import { describe, expect, it } from "vitest";
import {
  placeBlockhashes,
  readBlockhash,
  readBlockhashList,
  readContacts,
  readCount,
  readDelinquent,
  readEpochInfo,
  readEpochSchedule,
  readLeaders,
  readSlotTime,
  readStatuses,
  slotsInEpoch,
} from "../../../src/cluster/rpc/responses.ts";

const NONSENSE = [null, undefined, 7, "x", [], [7], {}, { value: null }, { value: {} }];

describe("a blockhash", () => {
  it("is 32 bytes with the last height it is good for", () => {
    const value = { blockhash: `${"1".repeat(31)}2`, lastValidBlockHeight: 200 };
    const read = readBlockhash({ context: { slot: 1 }, value });
    expect([...read.blockhash]).toEqual([...new Array(31).fill(0), 1]);
    expect(read.lastValidHeight).toBe(200);
  });

  it("is refused when anything of it is missing", () => {
    const good = { blockhash: "1".repeat(32), lastValidBlockHeight: 200 };
    const wrong = [
      { ...good, blockhash: "1".repeat(31) },
      { ...good, blockhash: "0".repeat(32) },
      { ...good, lastValidBlockHeight: -1 },
      { ...good, lastValidBlockHeight: "200" },
    ];
    for (const result of [...NONSENSE, ...wrong.map((value) => ({ value }))]) {
      expect(() => readBlockhash(result)).toThrow("getLatestBlockhash");
    }
  });
});

describe("statuses", () => {
  const read = (...value: unknown[]) => readStatuses({ context: { slot: 5 }, value }, value.length);

  it("keep their order, with null for what no block holds", () => {
    const one = { slot: 3, confirmations: 1, err: null, confirmationStatus: "confirmed" };
    expect(read(null, one, null)).toEqual({
      slot: 5,
      statuses: [null, { slot: 3, confirmed: true, error: null }, null],
    });
  });

  it("are confirmed from confirmed on, and carry the network's error as JSON", () => {
    const err = { InstructionError: [0, { Custom: 1 }] };
    const at = (confirmationStatus: unknown, confirmations: number | null = 0) =>
      read({ slot: 3, confirmations, err, confirmationStatus }).statuses[0];
    const error = '{"InstructionError":[0,{"Custom":1}]}';
    expect(at("processed")).toEqual({ slot: 3, confirmed: false, error });
    expect(at("confirmed")).toEqual({ slot: 3, confirmed: true, error });
    expect(at("finalized")).toEqual({ slot: 3, confirmed: true, error });
    expect(at(null, 3)?.confirmed).toBe(false);
    expect(at(undefined, null)?.confirmed).toBe(true);
    expect(read({ slot: 3, err: "AccountInUse" }).statuses[0]?.error).toBe('"AccountInUse"');
  });

  it("are no answer when one is missing, or is no status", () => {
    expect(() => readStatuses({ context: { slot: 5 }, value: [null] }, 2)).toThrow("list of 2");
    expect(() => readStatuses({ value: [null] }, 1)).toThrow("list of 1");
    for (const wrong of [7, "x", {}, { slot: -1 }, { slot: "3" }, []]) {
      expect(() => read(wrong)).toThrow("without a slot");
    }
    for (const result of NONSENSE) expect(() => readStatuses(result, 1)).toThrow();
  });
});

describe("delinquent leaders", () => {
  it("are identities none of whose accounts votes, each once", () => {
    const accounts = (...identities: unknown[]) => identities.map((nodePubkey) => ({ nodePubkey }));
    const current = accounts("A", "B");
    const delinquent = [...accounts("B", "C", "C", 7), null, "x"];
    expect(readDelinquent({ current, delinquent })).toEqual(["C"]);
  });

  it("are not made up from nonsense", () => {
    for (const result of [...NONSENSE, { current: [] }, { delinquent: [] }]) {
      expect(() => readDelinquent(result)).toThrow("getVoteAccounts");
    }
  });
});

it("refuses what is no count, no schedule and no list of nodes", () => {
  for (const result of [-1, 1.5, "7", null, Number.NaN]) {
    expect(() => readCount("getBlockHeight", result)).toThrow("getBlockHeight");
  }
  expect(readCount("getBlockHeight", 0)).toBe(0);
  expect(() => readLeaders([])).toThrow("no map");
  expect(() => readContacts({})).toThrow("no list");
});

it("reads the slot time over all samples that make sense, and none from an empty list", () => {
  const samples = [
    { numSlots: 200, samplePeriodSecs: 60, numTransactions: 1, slot: 7 },
    { numSlots: 0, samplePeriodSecs: 60 },
    { numSlots: -1, samplePeriodSecs: 60 },
    "x",
    { numSlots: 40, samplePeriodSecs: 12 },
  ];
  expect(readSlotTime(samples)).toBe(300);
  expect(readSlotTime([])).toBeNull();
  expect(() => readSlotTime({})).toThrow("getRecentPerformanceSamples");
});

describe("the list of blockhashes", () => {
  const hash = (fill: number) => new Uint8Array(32).fill(fill);
  const listed = (count: number, ...fills: readonly number[]) => {
    const data = Buffer.alloc(8 + 40 * fills.length);
    data.writeBigUInt64LE(BigInt(count));
    for (const [index, fill] of fills.entries()) data.set(hash(fill), 8 + 40 * index);
    return readBlockhashList({ value: { data: [data.toString("base64"), "base64"] } });
  };

  it("is read as far as it goes, whatever count it tells", () => {
    expect(listed(2, 5, 4, 3).map(([fill]) => fill)).toEqual([5, 4]);
    expect(listed(9, 5, 4, 3).map(([fill]) => fill)).toEqual([5, 4, 3]);
    expect(listed(0, 5)).toEqual([]);
  });

  it("is empty where there is nothing to read", () => {
    for (const nonsense of NONSENSE) expect(readBlockhashList(nonsense)).toEqual([]);
    for (const data of [["!!", "base64"], ["AAAA", "base64"], [7], "AAAA"]) {
      expect(readBlockhashList({ value: { data } })).toEqual([]);
    }
  });

  it("has its places by the latest, which alone is known where the list lacks it", () => {
    const latest = { blockhash: hash(4), lastValidHeight: 200 };
    const places = placeBlockhashes(latest, [hash(5), hash(4), hash(3)]);
    expect(places.map(({ lastValidHeight }) => lastValidHeight)).toEqual([201, 200, 199]);
    expect(placeBlockhashes(latest, [hash(5), hash(3)])).toEqual([latest]);
    expect(placeBlockhashes(latest, [])).toEqual([latest]);
  });
});

describe("an epoch", () => {
  it("doubles from 32 slots until it has its length", () => {
    const schedule = readEpochSchedule({ slotsPerEpoch: 8192, firstNormalEpoch: 8, warmup: true });
    expect([0, 1, 7, 8, 9].map((epoch) => slotsInEpoch(schedule, epoch))).toEqual([
      32, 64, 4096, 8192, 8192,
    ]);
  });

  it("is refused where anything of it is missing", () => {
    for (const nonsense of NONSENSE) {
      expect(() => readEpochSchedule(nonsense)).toThrow("getEpochSchedule");
      expect(() => readEpochInfo(nonsense)).toThrow("getEpochInfo");
    }
  });
});
