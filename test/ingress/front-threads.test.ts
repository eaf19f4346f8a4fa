/** Fronts on threads of their own, as built: connections come to them in turn. */

import { once as event } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { portOf } from "../../src/core/port.ts";
import { createMovedRequests } from "../../src/ingress/moved-requests.ts";
import {
  connectRaw,
  type Fixture,
  post,
  RAW,
  startFixture,
  WITH_KEY,
} from "../conformance/http-fixture.ts";

const OWN_KEY = "td_test_key_of_the_front";
const OWN = post(RAW, new Uint8Array(5), [`api-x-token: ${OWN_KEY}`]);
const MOVED = post(RAW, new Uint8Array(300), [WITH_KEY]);

async function startThread({ server }: Fixture) {
  const { port1, port2 } = new MessageChannel();
  const thread = new Worker(new URL("../support/moving-front.mjs", import.meta.url), {
    workerData: { port: port1, key: OWN_KEY },
    transferList: [port1],
  });
  const requests = createMovedRequests({ port: portOf(port2), http: server });
  const [descriptor] = await event(thread, "message");
  server.addFront(descriptor);
  return {
    requests,
    /** Answers its counters once it has stopped and its thread has ended. */
    async stop(): Promise<unknown> {
      const [told, ended] = [event(thread, "message"), event(thread, "exit")];
      thread.postMessage("stop");
      const [counters] = await told;
      expect(await ended).toEqual([0]);
      return counters;
    },
  };
}

it("answer by themselves or move, share the connections, and end with their threads", async () => {
  const edge = await startFixture();
  const threads = [await startThread(edge), await startThread(edge)];
  const clients = await Promise.all(Array.from({ length: 20 }, () => connectRaw(edge.port)));
  for (let round = 0; round < 5; round += 1) {
    const answers = clients.map(async (client, index) => {
      client.write(OWN);
      expect((await client.answer()).body).toContain("of 5 bytes");
      client.write(index % 2 === 0 ? MOVED : "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
      expect((await client.answer()).status).toBe(200);
    });
    await Promise.all(answers);
  }
  expect(edge.server.counters).toMatchObject({ connections: 0, requests: 100, accepted: 50 });
  expect(threads.map(({ requests }) => requests.open)).toEqual([0, 0]);
  const counted = { connections: 0, requests: 50, requestsOpen: 0, accepted: 50, moved: 50 };
  const stopped = Promise.all([edge.stop(), ...threads.map((thread) => thread.stop())]);
  await Promise.all(clients.map((client) => client.ended()));
  expect((await stopped).slice(1)).toMatchObject([counted, counted]);
});
