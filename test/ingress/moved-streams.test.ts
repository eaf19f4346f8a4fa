/** Streams that a front moves: as on the main thread, and bounded on the way. */

import { connect } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { RECEIPT_STREAM_STALL_MS_MAX } from "../../src/core/limits.ts";
import type { ReceiptSource } from "../../src/ingress/receipt-source.ts";
import {
  type FixtureOptions,
  once,
  post,
  RAW,
  startFixture,
  WITH_KEY,
} from "../conformance/http-fixture.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { addFront } from "../support/front.ts";
import { receiptSource } from "../support/receipt-source.ts";
import { until } from "../support/wait.ts";

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

function ask(path: string, ...headers: readonly string[]): string {
  return `${[`GET ${path} HTTP/1.1`, "Host: x", ...headers].join("\r\n")}\r\n\r\n`;
}

describe("a stream", () => {
  /** Receipts whose log is endless: every change is one of the account's, of so many bytes. */
  function endless(): { readonly source: ReceiptSource; add(count: number): void } {
    const changes = { first: 1, next: 1 };
    const receipt = { filling: "x".repeat(1_000) };
    /** The number behind those that `take` wants. */
    const walk = (from: number, stepsMax: number, take: (number: number) => boolean): number => {
      const end = Math.min(changes.next, from + stepsMax);
      for (let number = from; number < end; number += 1) if (!take(number)) return number + 1;
      return end;
    };
    const source = receiptSource({
      changes,
      readChanges: (_, from, { stepsMax }, take) =>
        walk(from, stepsMax, (number) => take(number, receipt)),
      eachChange: (from, { stepsMax }, take) =>
        walk(from, stepsMax, (number) => {
          take(number, "landed", "acme", () => receipt);
          return true;
        }),
    });
    return {
      source,
      add(count) {
        changes.next += count;
      },
    };
  }

  async function open(options: FixtureOptions) {
    const edge = await startFixture(options);
    const front = addFront(edge);
    ends.push(front.stop);
    const socket = connect(edge.port, "127.0.0.1");
    const seen = { text: "", isEnded: false };
    socket.on("data", (data) => {
      seen.text += data.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      seen.isEnded = true;
    });
    socket.write(ask("/api/v1/receipts", WITH_KEY));
    await until("the text", () => seen.text.includes("retry: 1000"));
    return { edge, front, socket, seen, streams: edge.server.receipts.streams };
  }

  it("ends with its last lines when the edge drains, and both then wait for nobody", async () => {
    const { edge, front, seen } = await open({ clock: createFakeClock() });
    expect(seen.text).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-type: text\/event-stream\r\n/i);
    expect(front.server.counters.requestsOpen).toBe(1);
    edge.server.drain();
    front.server.drain();
    await until("its end", () => seen.text.includes(": this edge is draining"));
    await until("its end", () => seen.text.endsWith("0\r\n\r\n"));
    expect(front.server.counters.requestsOpen).toBe(0);
    const refused = await once(edge.port, post(RAW, new Uint8Array(3), [WITH_KEY]));
    expect([refused.status, refused.headers.get("connection")]).toEqual([503, "close"]);
    const pinged = await once(edge.port, ask("/ping"));
    expect([pinged.body, pinged.headers.get("connection")]).toEqual(["ok", "close"]);
  });

  it("stalls while the client takes nothing in, then goes on, and is cut at last", async () => {
    const clock = createFakeClock();
    const { source, add } = endless();
    const { edge, front, socket, seen, streams } = await open({ clock, receipts: source });
    socket.pause();
    add(60_000);
    /** Rounds until no more is written. */
    const fill = async (): Promise<number> => {
      let before = -1;
      while (streams.events !== before) {
        before = streams.events;
        for (let round = 0; round < 50; round += 1) {
          clock.advance(20);
          await turn();
        }
      }
      return before;
    };
    const stalledAt = await fill();
    expect(stalledAt).toBeLessThan(20_000);
    socket.resume();
    await until("more events", () => {
      clock.advance(20);
      return streams.events > stalledAt + 1_000;
    });
    socket.pause();
    expect(await fill()).toBeLessThan(59_000);
    clock.advance(RECEIPT_STREAM_STALL_MS_MAX + 100);
    expect(streams).toMatchObject({ open: 0, cutSlow: 1 });
    socket.resume();
    await until("its end", () => seen.isEnded);
    expect(front.server.counters.requestsOpen).toBe(0);
    expect(edge.server.counters.requestsOpen).toBe(0);
  });

  it("keeps a client that takes in all from stalling", async () => {
    const clock = createFakeClock();
    const { source, add } = endless();
    const { seen, socket, streams } = await open({ clock, receipts: source });
    add(5_000);
    await until("all events", () => {
      clock.advance(20);
      return seen.text.split("event: receipt").length > 5_000;
    });
    expect(streams.events).toBe(5_000);
    const numbers = [...seen.text.matchAll(/^id: \w+-(\d+)$/gm)].map(([, id]) => Number(id));
    expect(numbers).toEqual(Array.from({ length: 5_000 }, (_, i) => i + 1));
    socket.destroy();
    await until("its end", () => streams.open === 0);
  });
});
