import { MessageChannel } from "node:worker_threads";
import { expect, it } from "vitest";
import { Outbox, portOf } from "../../src/core/port.ts";
import { until } from "../support/wait.ts";

it("posts what a turn puts in one message, and what is still added to it", async () => {
  const { port1, port2 } = new MessageChannel();
  const messages: unknown[] = [];
  portOf<never, unknown>(port2).onMessage((message) => void messages.push(message));
  const outbox = new Outbox<number[]>(portOf(port1));
  const first = [1];
  outbox.put(first);
  outbox.put([2]);
  first.push(3);
  expect(outbox.turn).toBe(0);
  await until("the post", () => outbox.turn === 1);
  first.push(4);
  outbox.put([5]);
  await until("the messages", () => messages.length === 2);
  expect(messages).toEqual([[[1, 3], [2]], [[5]]]);
  expect(outbox.turn).toBe(2);
  port1.close();
});
