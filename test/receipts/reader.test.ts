import { describe, expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import { RECEIPT_LIST_STEPS_MAX } from "../../src/core/limits.ts";
import { STATE_ACCEPTED, STATE_LANDED } from "../../src/receipts/columns.ts";
import { createReceiptReader } from "../../src/receipts/reader.ts";
import { logOther, recordDelivery, setLanding } from "../../src/receipts/states.ts";
import { ReceiptStore } from "../../src/receipts/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createRng } from "../support/rng.ts";

function bytesOf(number: number): Uint8Array {
  const bytes = new Uint8Array(64).fill(9);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

const nameOf = (number: number): string => encodeSignature(bytesOf(number));

function setup(rowsMax = 16) {
  const clock = createFakeClock();
  const store = new ReceiptStore(rowsMax);
  const reader = createReceiptReader(clock, store, 1e9);
  const open = (number: number, account = "acme"): number => {
    if (store.isFull) store.evict();
    const row = store.open(bytesOf(number), 0);
    store.rows.receivedNs[row] = clock.nowNs();
    store.rows.receivedUnixMs[row] = clock.unixMs();
    store.submitters.add(row, account);
    store.changes.add(store.sequenceOf(row), STATE_ACCEPTED);
    return row;
  };
  const land = (row: number): void => setLanding(store, row, STATE_LANDED, 400, clock.nowNs());
  const list = (query: Partial<Parameters<typeof reader.list>[1]> = {}, account = "acme") =>
    reader.list(account, { states: null, limit: 50, before: null, ...query });
  const changes = (
    account: string,
    from = 1,
    stepsMax = 1000,
    states: "landed"[] | null = null,
  ) => {
    const entries: string[] = [];
    const next = reader.readChanges(account, from, { states, stepsMax }, (number, receipt) => {
      entries.push(`${number} ${receipt.state}`);
      return true;
    });
    return { entries, next };
  };
  return { clock, store, reader, open, land, list, changes };
}

describe("a list", () => {
  it("contains an account's receipts, newest first, without their leaders", () => {
    const { open, list } = setup();
    for (const number of [1, 2, 3]) open(number);
    open(4, "other");
    const { transactions, next } = list();
    expect(transactions.map(({ signature }) => signature)).toEqual([3, 2, 1].map(nameOf));
    expect(transactions[0]).not.toHaveProperty("leaders");
    expect(next).toBeNull();
    expect(list({}, "nobody")).toEqual({ transactions: [], next: null });
  });

  it("continues after a cursor until the end", () => {
    const { open, list } = setup();
    for (let number = 1; number <= 5; number += 1) open(number);
    const first = list({ limit: 2 });
    expect(first.next).toBe(nameOf(4));
    const second = list({ limit: 2, before: first.next });
    expect(second.transactions.map(({ signature }) => signature)).toEqual([3, 2].map(nameOf));
    const third = list({ limit: 2, before: second.next });
    expect(third.transactions.map(({ signature }) => signature)).toEqual([nameOf(1)]);
    expect(third.next).toBeNull();
    expect(list({ limit: 5 }).next).toBeNull();
  });

  it("is empty after an evicted cursor, or that of another account", () => {
    const { open, list } = setup();
    open(1);
    open(2, "other");
    expect(list({ before: nameOf(2) })).toEqual({ transactions: [], next: null });
    expect(list({ before: nameOf(99) })).toEqual({ transactions: [], next: null });
  });

  it("contains those in the requested states", () => {
    const { store, open, land, list } = setup();
    land(open(1));
    recordDelivery(store, open(2), "sent");
    land(open(3));
    const landed = list({ states: ["landed"] });
    expect(landed.transactions.map(({ signature }) => signature)).toEqual([3, 1].map(nameOf));
    expect(list({ states: ["sent", "expired"] }).transactions).toMatchObject([{ state: "sent" }]);
  });

  it("omits receipts that are too old", () => {
    const { clock, open, list } = setup();
    open(1);
    clock.advance(600);
    open(2);
    clock.advance(600);
    expect(list().transactions.map(({ signature }) => signature)).toEqual([nameOf(2)]);
  });

  it("checks a bounded number, and returns where to continue", () => {
    const { open, land, list } = setup(RECEIPT_LIST_STEPS_MAX + 10);
    land(open(0));
    for (let number = 1; number <= RECEIPT_LIST_STEPS_MAX; number += 1) open(number);
    const first = list({ states: ["landed"] });
    expect(first).toEqual({ transactions: [], next: nameOf(1) });
    const second = list({ states: ["landed"], before: first.next });
    expect(second.transactions).toMatchObject([{ signature: nameOf(0) }]);
  });
});

describe("a ticket", () => {
  it("reports that its receipt has reached the status, has ended or was evicted", () => {
    const { store, reader, open, land } = setup(2);
    const row = open(1);
    const ticket = reader.ticket(nameOf(1), "acme") ?? -1;
    expect(reader.ticket(nameOf(1), "other")).toBeNull();
    expect(reader.reached(ticket, "processed")).toBe(false);
    setLanding(store, row, 4, 400, 0);
    expect([reader.reached(ticket, "processed"), reader.reached(ticket, "landed")]).toEqual([
      true,
      false,
    ]);
    land(row);
    expect(reader.reached(ticket, "landed")).toBe(true);
    open(2);
    const other = reader.ticket(nameOf(2), "acme") ?? -1;
    expect(reader.reached(other, "landed")).toBe(false);
    open(3);
    open(4);
    expect(reader.reached(other, "landed")).toBe(true);
  });
});

describe("the changes", () => {
  it("are read by the receipt's account, with the state of that change", () => {
    const { store, open, land, changes } = setup();
    const row = open(1);
    open(2, "other");
    recordDelivery(store, row, "sent");
    land(row);
    expect(changes("acme")).toEqual({ entries: ["1 accepted", "3 sent", "4 landed"], next: 5 });
    expect(changes("other").entries).toEqual(["2 accepted"]);
    expect(changes("unknown account")).toEqual({ entries: [], next: 5 });
    expect(changes("acme", 4).entries).toEqual(["4 landed"]);
    expect(changes("acme", 1, 1000, ["landed"]).entries).toEqual(["4 landed"]);
  });

  it("are read in bounded steps, until the callback stops", () => {
    const { reader, open, changes } = setup();
    for (const number of [1, 2, 3, 4]) open(number);
    expect(changes("acme", 2, 2)).toEqual({ entries: ["2 accepted", "3 accepted"], next: 4 });
    const limits = { states: null, stepsMax: 100 };
    expect(reader.readChanges("acme", 1, limits, () => false)).toBe(2);
  });

  it("skip evicted receipts, and changes overwritten in the ring", () => {
    const { store, open, changes } = setup(2);
    open(1);
    open(2);
    store.evict();
    expect(changes("acme").entries).toEqual(["2 accepted"]);
    for (let number = 3; number < 12; number += 1) open(number);
    expect(changes("acme").entries).toEqual(["10 accepted", "11 accepted"]);
  });

  it("say where they skip evicted receipts, also to an account whose receipts are all gone", () => {
    const { store, reader, open, land, changes } = setup(2);
    land(open(1));
    open(2, "other");
    store.evict();
    const skipped = (account: string, from: number, states: "landed"[] | null): number => {
      let count = 0;
      const limits = { states, stepsMax: 100 };
      const next = reader.readChanges(
        account,
        from,
        limits,
        () => true,
        () => {
          count += 1;
        },
      );
      expect(next).toBe(4);
      return count;
    };
    expect(["acme", "other"].map((account) => skipped(account, 1, null))).toEqual([2, 2]);
    expect([skipped("acme", 1, ["landed"]), skipped("acme", 3, null)]).toEqual([1, 0]);
    // One that need not know takes one step.
    expect(changes("acme", 1, 1)).toEqual({ entries: [], next: 4 });
  });

  it("leave out what is logged for a successor alone", () => {
    const { store, reader, open, land, changes } = setup();
    const row = open(1);
    store.changes.isFollowed = true;
    logOther(store, row);
    land(row);
    expect(changes("acme")).toEqual({ entries: ["1 accepted", "3 landed"], next: 4 });
    const states: string[] = [];
    const which = { wants: () => true, stepsMax: 100 };
    reader.eachChange(1, which, (_, state) => void states.push(state));
    expect(states).toEqual(["accepted", "landed"]);
  });

  it("of all accounts together equal those of each account", () => {
    const { store, reader, open, land, changes } = setup(64);
    const rng = createRng(11);
    const accounts = ["acme", "other", "third", "fourth", "fifth"];
    for (let number = 1; number < 400; number += 1) {
      const row = open(number, rng.pick(accounts));
      for (let joins = rng.below(6); joins > 0; joins -= 1) {
        store.submitters.add(row, rng.pick(accounts));
      }
      if (rng.chance(2)) land(row);
    }
    const entries = new Map<string, string[]>(accounts.map((account) => [account, []]));
    let receipts = 0;
    const which = { wants: (account: string) => account !== "third", stepsMax: 100 };
    let from = 1;
    while (from < store.changes.next) {
      from = reader.eachChange(from, which, (number, state, account, receipt) => {
        entries.get(account)?.push(`${number} ${state}`);
        if (rng.chance(3)) receipts += receipt().state === state ? 1 : -1_000;
      });
    }
    expect(entries.get("third")).toEqual([]);
    for (const account of ["acme", "other", "fourth", "fifth"]) {
      expect([account, entries.get(account)]).toEqual([account, changes(account).entries]);
    }
    expect(receipts).toBeGreaterThan(10);
  });
});
