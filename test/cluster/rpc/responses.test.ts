import { describe, expect, it } from "vitest";
import {
  placeBlockhashes,
  readBlockhash,
  readBlockhashList,
  readBlockStatus,
  readConsensus,
  readContacts,
  readCount,
  readDelinquent,
  readEpochInfo,
  readEpochSchedule,
  readLeaders,
  readSlotTime,
  readStakes,
  readStatuses,
  slotsInEpoch,
} from "../../../src/cluster/rpc/responses.ts";

const INVALID = [null, undefined, 7, "x", [], [7], {}, { value: null }, { value: {} }];

describe("getLatestBlockhash response", () => {
  it("decodes the 32-byte blockhash and its last valid height", () => {
    const value = { blockhash: `${"1".repeat(31)}2`, lastValidBlockHeight: 200 };
    const read = readBlockhash({ context: { slot: 1 }, value });
    expect([...read.blockhash]).toEqual([...new Array(31).fill(0), 1]);
    expect(read.lastValidHeight).toBe(200);
  });

  it("is rejected if a field is missing or invalid", () => {
    const valid = { blockhash: "1".repeat(32), lastValidBlockHeight: 200 };
    const wrong = [
      { ...valid, blockhash: "1".repeat(31) },
      { ...valid, blockhash: "0".repeat(32) },
      { ...valid, lastValidBlockHeight: -1 },
      { ...valid, lastValidBlockHeight: "200" },
    ];
    for (const result of [...INVALID, ...wrong.map((value) => ({ value }))]) {
      expect(() => readBlockhash(result)).toThrow("getLatestBlockhash");
    }
  });
});

describe("getSignatureStatuses response", () => {
  const read = (...value: unknown[]) => readStatuses({ context: { slot: 5 }, value }, value.length);

  it("keeps the order of the signatures, with null for those in no block", () => {
    const one = { slot: 3, confirmations: 1, err: null, confirmationStatus: "confirmed" };
    expect(read(null, one, null)).toEqual({
      slot: 5,
      statuses: [null, { slot: 3, confirmed: true, error: null }, null],
    });
  });

  it("marks confirmed and finalized as confirmed, and keeps the error as JSON", () => {
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

  it("is rejected if a status is missing or invalid", () => {
    expect(() => readStatuses({ context: { slot: 5 }, value: [null] }, 2)).toThrow("list of 2");
    expect(() => readStatuses({ value: [null] }, 1)).toThrow("list of 1");
    for (const wrong of [7, "x", {}, { slot: -1 }, { slot: "3" }, []]) {
      expect(() => read(wrong)).toThrow("without a slot");
    }
    for (const result of INVALID) expect(() => readStatuses(result, 1)).toThrow();
  });
});

describe("getVoteAccounts response", () => {
  it("lists once each identity that has only delinquent vote accounts", () => {
    const accounts = (...identities: unknown[]) => identities.map((nodePubkey) => ({ nodePubkey }));
    const current = accounts("A", "B");
    const delinquent = [...accounts("B", "C", "C", 7), null, "x"];
    expect(readDelinquent({ current, delinquent })).toEqual(["C"]);
  });

  it("sums up the stake of each identity, also one above 2^53 lamports", () => {
    const account = (nodePubkey: unknown, activatedStake: unknown) => ({
      nodePubkey,
      activatedStake,
    });
    const current = [account("A", 5), account("A", 7), account("B", 1.3e16)];
    const delinquent = [account("C", 2), account("D", "9"), account("E", -1), account(7, 1), null];
    expect([...readStakes({ current, delinquent })]).toEqual([
      ["A", 12],
      ["B", 1.3e16],
      ["C", 2],
    ]);
    for (const result of INVALID) expect(readStakes(result).size).toBe(0);
  });

  it("is rejected if a list is missing", () => {
    for (const result of [...INVALID, { current: [] }, { delinquent: [] }]) {
      expect(() => readDelinquent(result)).toThrow("getVoteAccounts");
    }
  });
});

it("reads Alpenglow from any certificate, and TowerBFT from none", () => {
  expect([null, {}, { blockId: "x" }].map(readConsensus)).toEqual([
    "tower_bft",
    "alpenglow",
    "alpenglow",
  ]);
  for (const wrong of [undefined, true, 7, "x"]) {
    expect(() => readConsensus(wrong)).toThrow("getAgGenesisCert");
  }
});

it("rejects invalid counts, leader schedules and node lists", () => {
  for (const result of [-1, 1.5, "7", null, Number.NaN]) {
    expect(() => readCount("getBlockHeight", result)).toThrow("getBlockHeight");
  }
  expect(readCount("getBlockHeight", 0)).toBe(0);
  expect(() => readLeaders([])).toThrow("no map");
  expect(() => readContacts({})).toThrow("no list");
});

it("averages the slot time over all valid samples, and returns null for an empty list", () => {
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

describe("blockhash list of the sysvar", () => {
  const hash = (fill: number) => new Uint8Array(32).fill(fill);
  const listed = (count: number, ...fills: readonly number[]) => {
    const data = Buffer.alloc(8 + 40 * fills.length);
    data.writeBigUInt64LE(BigInt(count));
    for (const [index, fill] of fills.entries()) data.set(hash(fill), 8 + 40 * index);
    return readBlockhashList({ value: { data: [data.toString("base64"), "base64"] } });
  };

  it("stops at the end of the data even if its count is larger", () => {
    expect(listed(2, 5, 4, 3).map(([fill]) => fill)).toEqual([5, 4]);
    expect(listed(9, 5, 4, 3).map(([fill]) => fill)).toEqual([5, 4, 3]);
    expect(listed(0, 5)).toEqual([]);
  });

  it("is empty for invalid data", () => {
    for (const invalid of INVALID) expect(readBlockhashList(invalid)).toEqual([]);
    for (const data of [["!!", "base64"], ["AAAA", "base64"], [7], "AAAA"]) {
      expect(readBlockhashList({ value: { data } })).toEqual([]);
    }
  });

  it("derives heights from the latest blockhash, or keeps that alone if unlisted", () => {
    const latest = { blockhash: hash(4), lastValidHeight: 200 };
    const entries = placeBlockhashes(latest, [hash(5), hash(4), hash(3)]);
    expect(entries.map(({ lastValidHeight }) => lastValidHeight)).toEqual([201, 200, 199]);
    expect(placeBlockhashes(latest, [hash(5), hash(3)])).toEqual([latest]);
    expect(placeBlockhashes(latest, [])).toEqual([latest]);
  });
});

describe("epoch schedule", () => {
  it("doubles the epoch length from 32 slots until the normal length", () => {
    const schedule = readEpochSchedule({ slotsPerEpoch: 8192, firstNormalEpoch: 8, warmup: true });
    expect([0, 1, 7, 8, 9].map((epoch) => slotsInEpoch(schedule, epoch))).toEqual([
      32, 64, 4096, 8192, 8192,
    ]);
  });

  it("is rejected if a field is missing", () => {
    for (const invalid of INVALID) {
      expect(() => readEpochSchedule(invalid)).toThrow("getEpochSchedule");
      expect(() => readEpochInfo(invalid)).toThrow("getEpochInfo");
      expect(() => readBlockStatus(invalid)).toThrow("getEpochInfo");
    }
  });
});
