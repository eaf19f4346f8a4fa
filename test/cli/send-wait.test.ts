import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitForEnd } from "../../src/cli/send-wait.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { pace } from "../support/wait.ts";

let server: Server | null = null;
let clock: FakeClock;
let stopClock = (): void => {};
beforeEach(() => {
  clock = createFakeClock();
  stopClock = pace(clock);
});
afterEach(() => {
  stopClock();
  server?.close();
  server?.closeAllConnections();
  server = null;
});

interface Reply {
  readonly status?: number;
  readonly body: unknown;
}

/** An edge that returns these responses in order, then repeats the last one. */
async function edge(...replies: readonly Reply[]) {
  const asked: string[] = [];
  const listening = createServer((request, response) => {
    const reply = replies[Math.min(asked.length, replies.length - 1)];
    asked.push(`${request.headers["api-x-token"]} ${request.url}`);
    response.writeHead(reply?.status ?? 200).end(JSON.stringify(reply?.body));
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const address = listening.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const url = `http://127.0.0.1:${address.port}`;
  const wait = (timeoutMs = 20_000) =>
    waitForEnd(clock, { url, key: "td_key", signature: "5ig", timeoutMs });
  return { asked, wait };
}

const ended = (landing: object): Reply => ({ body: { landing } });
const IN_FLIGHT: Reply = { body: { state: "sent", landing: { state: "in_flight" } } };

describe("the end of a transaction", () => {
  it.each([
    [
      { state: "landed", slot: 9, slots: 1, error: null },
      true,
      "landed in slot 9, 1 slot after it came",
    ],
    [{ state: "landed", slot: 9, slots: null, error: null }, true, "landed in slot 9"],
    [
      { state: "landed", slot: 9, slots: 2, error: { InstructionError: [0, "X"] } },
      false,
      'failed on the network in slot 9, 2 slots after it came: {"InstructionError":[0,"X"]}',
    ],
    [
      { state: "expired", reason: "blockhash_expired", message: "too old" },
      false,
      "expired: blockhash_expired: too old",
    ],
  ])("is printed as one line: %j", async (landing, landed, line) => {
    const { wait } = await edge(ended(landing));
    const ending = await wait();
    expect(ending.landed).toBe(landed);
    expect(ending.line).toContain(line);
  });

  it("is reported when it had landed before it reached this edge", async () => {
    const landing = { state: "landed", slot: 9, slots: 0, error: null };
    const { wait } = await edge({ body: { received_slot: 12, landing } });
    expect((await wait()).line).toContain("landed in slot 9, before it came here");
  });

  it("is requested with the key until it is known", async () => {
    const { asked, wait } = await edge(
      IN_FLIGHT,
      IN_FLIGHT,
      ended({ state: "landed", slot: 9, error: null }),
    );
    expect((await wait()).landed).toBe(true);
    expect(asked).toHaveLength(3);
    expect(asked[0]).toMatch(/^td_key \/api\/v1\/transactions\/5ig\?wait=landed&timeout=\d+ms$/);
  });

  it("is requested again after a retryable rejection", async () => {
    const limited = { status: 429, body: { error: "too often" } };
    const { asked, wait } = await edge(limited, ended({ state: "landed", slot: 9, error: null }));
    expect((await wait()).landed).toBe(true);
    expect(asked).toHaveLength(2);
  });

  it("is requested again when the receipt is missing at first, as during an upgrade", async () => {
    const missing = { status: 404, body: { error: "no such transaction" } };
    const { asked, wait } = await edge(missing, ended({ state: "landed", slot: 9, error: null }));
    expect((await wait()).landed).toBe(true);
    expect(asked).toHaveLength(2);
  });

  it("is not awaited when there is no such receipt for a while", async () => {
    const { asked, wait } = await edge({ status: 404, body: { error: "no such transaction" } });
    expect(await wait()).toEqual({ landed: false, line: "no such transaction" });
    expect(asked.length).toBeLessThan(5);
  });

  it("is not awaited after another refusal", async () => {
    const { asked, wait } = await edge({ status: 401, body: { error: "the key is unknown" } });
    expect(await wait()).toEqual({ landed: false, line: "the key is unknown" });
    expect(asked).toHaveLength(1);
  });

  it("is abandoned after the timeout, with the last known state", async () => {
    const { wait } = await edge(IN_FLIGHT);
    expect(await wait(300)).toEqual({ landed: false, line: "no end in time: it is sent" });
  });
});
