import { describe, expect, it } from "vitest";
import type { ReceiptState } from "../../../src/core/receipt-state.ts";
import {
  RECEIPT_STREAM_CHARS_PER_ROUND,
  RECEIPT_STREAM_RESUME_MS_MAX,
  RECEIPT_STREAM_STALL_MS_MAX,
  RECEIPT_STREAMS_MAX,
  RECEIPT_STREAMS_PER_ACCOUNT_MAX,
} from "../../../src/http/limits.ts";
import { createStreams, type StreamRequest } from "../../../src/http/receipts/sse-streams.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createRng } from "../../support/rng.ts";

/** A log of changes that a test defines, and a client for each stream. */
function setup() {
  const clock = createFakeClock();
  const log: { readonly account: string; readonly state: string }[] = [];
  const changes = {
    first: 1,
    get next() {
      return log.length + 1;
    },
  };
  /** Changes whose receipts are gone. */
  const evicted = new Set<number>();
  /** How often the log was read for one stream alone. */
  const alone = { reads: 0 };
  /** Changes that happened and are not in the log before a flush. */
  const unsettled: string[] = [];
  const streams = createStreams({
    clock,
    flushEvents() {
      for (const state of unsettled.splice(0)) add(state);
    },
    receipts: {
      changes,
      readChanges(account, from, { states, stepsMax }, take, onEvicted) {
        alone.reads += 1;
        const end = Math.min(changes.next, from + stepsMax);
        for (let number = from; number < end; number += 1) {
          if (evicted.has(number)) {
            onEvicted?.();
            continue;
          }
          const change = log[number - 1];
          if (change?.account !== account) continue;
          if (states !== null && !states.some((state) => state === change.state)) continue;
          if (!take(number, { state: change.state })) return number + 1;
        }
        return end;
      },
      eachChange(from, { wants }, take) {
        for (let number = from; number < changes.next; number += 1) {
          const { account = "", state = "" } = log[number - 1] ?? {};
          // The tests name these states.
          if (wants(account)) take(number, state as ReceiptState, account, () => ({ state }));
        }
        return changes.next;
      },
    },
  });
  const add = (state: string, account = "acme"): void => void log.push({ account, state });
  const open = (request: Partial<StreamRequest> = {}) => {
    const client = { text: "", takesIn: true, isEnded: false, isCut: false, hasKey: true };
    const stream = streams.open(
      { account: "acme", states: null, lastEventId: "", ...request },
      {
        write(text) {
          client.text += text;
          return client.takesIn;
        },
        end() {
          client.isEnded = true;
        },
        abort() {
          client.isCut = true;
        },
        isKeyValid: () => client.hasKey,
      },
      () => {},
    );
    /** The states received since the last call. */
    const told = (): string[] => {
      const states = [...client.text.matchAll(/"state":"(\w+)"/g)].map(([, state = ""]) => state);
      client.text = "";
      return states;
    };
    const lastId = (): string => [...client.text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? "";
    return { client, stream, told, lastId };
  };
  return { clock, changes, streams, add, open, alone, evicted, unsettled };
}

/** The stream of an accepted `open`. */
function letIn<T>(stream: T | "account" | "all"): T {
  if (stream === "account" || stream === "all") throw new Error(`not opened: ${String(stream)}`);
  return stream;
}

describe("a stream of a replaced process", () => {
  /** It told the changes up to 2; the successor's begin with 5. */
  function replaced() {
    const rig = setup();
    const state = { isKnown: false };
    for (let number = 1; number < 5; number += 1) rig.add("old");
    Object.assign(rig.changes, {
      first: 5,
      epoch: "e",
      after: (number: number) => (state.isKnown && number === 2 ? 5 : number + 1),
      isAfterKnown: (number: number) => state.isKnown || number >= 4,
    });
    return { ...rig, state };
  }

  it("continues without a gap once it is known where that process ended", () => {
    const { clock, streams, add, open, state } = replaced();
    const { client, told } = open({ lastEventId: "e-2" });
    add("landed");
    clock.advance(20);
    expect(client.text).toBe("retry: 1000\n\n");
    state.isKnown = true;
    clock.advance(20);
    add("acked");
    clock.advance(20);
    expect(told()).toEqual(["landed", "acked"]);
    expect(streams.counters.gaps).toBe(0);
  });

  it("continues with a gap where that stays unknown, and where it missed some", () => {
    const { clock, streams, add, open, state } = replaced();
    const { client, told } = open({ lastEventId: "e-2" });
    add("landed");
    clock.advance(RECEIPT_STREAM_RESUME_MS_MAX - 20);
    expect(client.text).not.toContain("gap");
    clock.advance(40);
    expect(client.text).toContain("event: gap\n");
    expect(told()).toEqual(["landed"]);
    state.isKnown = true;
    expect(open({ lastEventId: "e-1" }).client.text).toContain("event: gap\n");
    expect(streams.counters.gaps).toBe(2);
  });

  it("has no id when the successor drains meanwhile, so that its client resumes as before", () => {
    const { streams, open } = replaced();
    const { client, lastId } = open({ lastEventId: "e-2" });
    streams.drain();
    expect(client.text).toMatch(/^retry: 1000\n\n: this edge is draining/);
    expect([lastId(), client.isEnded]).toEqual(["", true]);
    expect(streams.counters).toMatchObject({ open: 0, gaps: 0 });
  });

  it("leaves the account's other streams alone, while it waits and when its client leaves", () => {
    const { clock, streams, add, open } = replaced();
    const other = open();
    const waiting = open({ lastEventId: "e-2" });
    for (const state of ["accepted", "landed"]) {
      add(state);
      clock.advance(20);
      expect(other.told()).toEqual([state]);
      letIn(waiting.stream).left();
    }
    expect(streams.counters).toMatchObject({ open: 1, gaps: 0 });
    expect(waiting.told()).toEqual([]);
  });
});

describe("a stream", () => {
  it("begins with the retry interval, and sends later changes", () => {
    const { clock, streams, add, open } = setup();
    add("accepted");
    const { client, told } = open();
    expect(client.text).toBe("retry: 1000\n\n");
    add("sent");
    add("sent", "other");
    clock.advance(20);
    expect(client.text).toMatch(/^id: \w+-2\nevent: receipt\ndata: \{"state":"sent"\}\n\n$/m);
    expect(told()).toEqual(["sent"]);
    add("landed");
    clock.advance(20);
    expect(told()).toEqual(["landed"]);
    expect(streams.counters).toMatchObject({ open: 1, opened: 1, events: 2, gaps: 0 });
  });

  it("records everything so far before it sends", () => {
    const { clock, unsettled, open } = setup();
    const { told } = open();
    unsettled.push("acked");
    clock.advance(20);
    expect(told()).toEqual(["acked"]);
  });

  it("sends only the requested states", () => {
    const { clock, add, open } = setup();
    const { told } = open({ states: ["landed", "expired"] });
    for (const state of ["accepted", "sent", "landed"]) add(state);
    clock.advance(20);
    expect(told()).toEqual(["landed"]);
  });

  it("continues after the last event that the client received", () => {
    const { clock, streams, add, open } = setup();
    const first = open();
    for (const state of ["accepted", "sent"]) add(state);
    clock.advance(20);
    const lastEventId = first.lastId();
    letIn(first.stream).left();
    for (const state of ["acknowledged", "landed"]) add(state);
    const second = open({ lastEventId });
    clock.advance(20);
    expect(second.told()).toEqual(["acknowledged", "landed"]);
    expect(streams.counters.gaps).toBe(0);
  });

  it("reports that changes may have been missed, and continues with what is kept", () => {
    const { clock, changes, streams, add, open } = setup();
    for (const state of ["accepted", "sent", "landed"]) add(state);
    changes.first = 3;
    for (const lastEventId of ["another-1", "no id of ours", "1"]) {
      const { client, told } = open({ lastEventId });
      expect(client.text).toContain("event: gap\ndata: {");
      clock.advance(20);
      expect(told()).toEqual(["landed"]);
    }
    expect(streams.counters.gaps).toBe(3);
  });

  it("reports once that changes are missing whose receipts are gone, and continues", () => {
    const { clock, evicted, streams, add, open } = setup();
    const first = open();
    add("accepted");
    clock.advance(20);
    letIn(first.stream).left();
    for (const state of ["sent", "acknowledged", "landed"]) add(state);
    for (const number of [2, 3]) evicted.add(number);
    const second = open({ lastEventId: first.lastId() });
    clock.advance(20);
    expect(second.client.text).toMatch(/^retry: 1000\n\nevent: gap\ndata: \{.*\n\nid: /);
    expect(second.told()).toEqual(["landed"]);
    clock.advance(20);
    expect(second.client.text).toBe("");
    expect(streams.counters.gaps).toBe(1);
  });

  it("reports a new beginning once, also where receipts are gone, then each new loss", () => {
    const { clock, evicted, streams, add, open } = setup();
    for (const state of ["accepted", "sent", "landed"]) add(state);
    evicted.add(2);
    const { client, stream, told } = open({ lastEventId: "another-1" });
    client.takesIn = false;
    clock.advance(20);
    expect(told()).toEqual(["accepted", "landed"]);
    expect(streams.counters.gaps).toBe(1);
    for (const state of ["accepted", "landed"]) add(state);
    evicted.add(4);
    clock.advance(20);
    client.takesIn = true;
    letIn(stream).drained();
    clock.advance(20);
    expect(client.text).toMatch(/^event: gap\n/);
    expect(told()).toEqual(["landed"]);
    expect(streams.counters.gaps).toBe(2);
  });

  it("is kept alive by comments that move the last id on", () => {
    const { clock, add, open } = setup();
    const { client, told, lastId } = open();
    add("sent", "other");
    clock.advance(4_900);
    expect(client.text).toBe("retry: 1000\n\n");
    clock.advance(200);
    expect(lastId()).toMatch(/-1$/);
    expect(client.text).toContain(":\n");
    told();
    clock.advance(60_000);
    expect(client.text.match(/^:$/gm)?.length).toBeGreaterThanOrEqual(11);
  });

  it("writes a bounded piece at a time", () => {
    const { clock, add, open } = setup();
    const { client } = open();
    for (let n = 0; n < 10_000; n += 1) add("acknowledged");
    let largest = 0;
    for (let rounds = 0; rounds < 20; rounds += 1) {
      const before = client.text.length;
      clock.advance(20);
      largest = Math.max(largest, client.text.length - before);
    }
    expect(largest).toBeLessThan(RECEIPT_STREAM_CHARS_PER_ROUND + 200);
    expect(client.text.match(/^event: receipt$/gm)).toHaveLength(10_000);
  });
});

describe("a client that reads too slowly", () => {
  it("is sent nothing more until it has caught up, and misses nothing that is kept", () => {
    const { clock, add, open } = setup();
    const { client, stream, told } = open();
    client.takesIn = false;
    add("accepted");
    clock.advance(20);
    expect(told()).toEqual(["accepted"]);
    add("sent");
    clock.advance(1_000);
    expect(client.text).toBe("");
    client.takesIn = true;
    letIn(stream).drained();
    clock.advance(20);
    expect(told()).toEqual(["sent"]);
  });

  it("is cut when that lasts", () => {
    const { clock, streams, add, open } = setup();
    const { client } = open();
    client.takesIn = false;
    add("accepted");
    clock.advance(RECEIPT_STREAM_STALL_MS_MAX - 100);
    expect(client.isCut).toBe(false);
    clock.advance(200);
    expect(client.isCut).toBe(true);
    expect(streams.counters).toMatchObject({ open: 0, closedSlow: 1 });
    expect(clock.pending).toBe(0);
  });
});

describe("streams", () => {
  it("are cut once their key is no longer good", () => {
    const { clock, streams, open } = setup();
    const [first, second] = [open(), open()];
    first.client.hasKey = false;
    clock.advance(5_100);
    expect([first.client.isCut, second.client.isCut]).toEqual([true, false]);
    expect(streams.counters).toMatchObject({ open: 1, closedKey: 1 });
  });

  it("are bounded for an account and in all, and give their place back", () => {
    const { streams, open } = setup();
    const own = Array.from({ length: RECEIPT_STREAMS_PER_ACCOUNT_MAX }, () => open());
    expect(open().stream).toBe("account");
    for (let n = own.length; n < RECEIPT_STREAMS_MAX; n += 1) open({ account: `account ${n}` });
    expect(open({ account: "another" }).stream).toBe("all");
    letIn(own[0]?.stream ?? "all").left();
    letIn(open().stream);
    expect(streams.counters).toMatchObject({ open: RECEIPT_STREAMS_MAX, rejected: 2 });
  });

  it("end when draining, after the pending events", () => {
    const { clock, streams, add, open } = setup();
    const { client, told } = open();
    add("landed");
    streams.drain();
    expect(client.text).toMatch(/: this edge is draining/);
    expect([told(), client.isEnded, streams.counters.open]).toEqual([["landed"], true, 0]);
    expect(clock.pending).toBe(0);
  });

  it("are served by one read while all of them keep up", () => {
    const { clock, add, open, alone } = setup();
    const clients = Array.from({ length: 24 }, (_, place) => open({ account: `a${place % 6}` }));
    for (let round = 0; round < 10; round += 1) {
      for (let place = 0; place < 6; place += 1) add(`${round}`, `a${place}`);
      clock.advance(20);
    }
    for (const { told } of clients) expect(told()).toHaveLength(10);
    expect(alone.reads).toBe(0);
  });

  it("get each change of their account once and in order, whatever delays them", () => {
    const { clock, add, open } = setup();
    const rng = createRng(3);
    const accounts = ["acme", "other", "third"];
    const clients = Array.from({ length: 24 }, (_, place) => {
      const account = accounts[place % 3] ?? "";
      return { account, got: [] as string[], ...open({ account }) };
    });
    const all = new Map<string, string[]>(accounts.map((account) => [account, []]));
    for (let round = 0; round < 300; round += 1) {
      // Occasionally more than may be written to one stream in a round.
      for (let more = rng.chance(40) ? 4_000 : rng.below(6); more > 0; more -= 1) {
        const account = rng.pick(accounts);
        const state = `s${all.get(account)?.length}`;
        add(state, account);
        all.get(account)?.push(state);
      }
      for (const { client, stream } of clients) {
        if (rng.chance(9)) client.takesIn = !client.takesIn;
        if (client.takesIn) letIn(stream).drained();
      }
      clock.advance(20);
      for (const each of clients) each.got.push(...each.told());
    }
    for (const { client, stream } of clients) {
      client.takesIn = true;
      letIn(stream).drained();
    }
    clock.advance(2_000);
    for (const each of clients) {
      each.got.push(...each.told());
      expect(each.client.isCut).toBe(false);
      expect(each.got).toEqual(all.get(each.account));
    }
  });

  it("catch up one after another when many are far behind", () => {
    const { clock, streams, add, open } = setup();
    const ring = 60_000;
    for (let number = 0; number < ring; number += 1) add("old", "nobody");
    const count = 200;
    for (let place = 0; place < count; place += 1) {
      open({ account: `account ${place}`, lastEventId: "other-1" });
    }
    clock.advance(20);
    add("new", "nobody");
    const late = open({ account: "late" });
    add("first", "late");
    clock.advance(40);
    add("second", "late");
    clock.advance(20);
    expect(late.told()).toEqual(["first", "second"]);
    // More than the share of changes that streams may check in a round.
    for (let round = 0; round < 1_500; round += 1) {
      for (let more = 0; more < 200; more += 1) add("new", "nobody");
      clock.advance(20);
    }
    for (let place = 0; place < count; place += 1) add("last", `account ${place}`);
    const before = streams.counters.events;
    clock.advance(40);
    expect(streams.counters.events - before).toBe(count);
  });
});
