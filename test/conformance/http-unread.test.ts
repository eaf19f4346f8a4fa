/** Clients that request much and read nothing. */

import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { UNREAD_BYTES_MAX } from "../../src/http/limits.ts";
import { receiptSource } from "../support/receipt-source.ts";
import { isTunneled } from "../support/test-ingress.ts";
import { until } from "../support/wait.ts";
import { type Fixture, startFixture, WITH_KEY } from "./http-fixture.ts";

/** More than a kernel buffers for one connection; three exceed the limit for unread bytes. */
const TEXT = "x".repeat(Math.floor(0.4 * UNREAD_BYTES_MAX));
const ASK = `GET /api/v1/transactions HTTP/1.1\r\nHost: x\r\n${WITH_KEY}\r\n\r\n`;

let edge: Fixture;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await edge.stop();
});

/** Sends a request, and reads nothing until `read` is called. */
async function unreadClient(): Promise<Socket> {
  const socket = connect(edge.port, "127.0.0.1").pause();
  socket.on("error", () => {});
  sockets.push(socket);
  const before = edge.server.counters.responsesUnread;
  socket.write(ASK);
  await until("its response to be pending", () => edge.server.counters.responsesUnread > before);
  return socket;
}

/** Reads until the end of the response or of the connection. */
async function read(socket: Socket): Promise<number> {
  let size = 0;
  socket.on("data", (data) => {
    size += data.length;
  });
  socket.resume();
  await until("its end", () => size > TEXT.length || socket.closed);
  return size;
}

it.skipIf(isTunneled)(
  "unread responses are bounded in total: the oldest unread connection is closed",
  async () => {
    const receipts = receiptSource({ list: () => ({ text: TEXT }) });
    edge = await startFixture({ receipts });
    const { unread } = edge.server;
    const clients: Socket[] = [];
    for (let count = 0; count < 5; count += 1) {
      clients.push(await unreadClient());
      expect(unread.bytes).toBeLessThanOrEqual(UNREAD_BYTES_MAX);
    }
    expect(unread.closed).toBe(3);
    const [first, , , fourth, fifth] = clients;
    if (first === undefined || fourth === undefined || fifth === undefined) throw new Error("none");
    // A client that was not closed receives its complete response as soon as it reads.
    expect(await read(fifth)).toBeGreaterThan(TEXT.length);
    expect(await read(fourth)).toBeGreaterThan(TEXT.length);
    expect(await read(first)).toBeLessThan(TEXT.length);
    await until("nothing to wait", () => unread.bytes === 0);
  },
);
