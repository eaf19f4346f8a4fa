import { once } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { alpenglow, atEnd, endAll, land, setUpRunning } from "./cluster-fixture.ts";

const WAIT = { timeout: 30_000, interval: 20 };
afterEach(endAll);

interface Message {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number };
  readonly method?: string;
  readonly params?: { readonly result: Record<string, unknown> };
}

/** A client that sends these texts, and the messages that it receives. */
async function listen(wsUrl: string, ...texts: string[]) {
  const socket = new WebSocket(wsUrl);
  atEnd(() => socket.terminate());
  await once(socket, "open");
  const messages: Message[] = [];
  // The shape of everything that the server sends.
  socket.on("message", (data) => messages.push(JSON.parse(String(data)) as Message));
  for (const text of texts) socket.send(text);
  return { socket, messages };
}

const call = (method: string, ...params: unknown[]): string =>
  JSON.stringify({ jsonrpc: "2.0", id: method, method, params });

interface SlotUpdate {
  readonly type: string;
  readonly slot: number;
}

const updatesOf = (messages: readonly Message[]): readonly SlotUpdate[] =>
  messages
    .filter(({ method }) => method === "slotsUpdatesNotification")
    // The format of every slot update.
    .map(({ params }) => params?.result as unknown as SlotUpdate);

describe("the simulated WebSocket", () => {
  it("survives invalid JSON-RPC, answers no notification, and ends subscriptions", async () => {
    const { wsUrl } = await setUpRunning();
    const { messages } = await listen(
      wsUrl,
      "{",
      "null",
      '{"jsonrpc":"2.0","method":"ping"}',
      '{"jsonrpc":"2.0","id":1,"method":"nothing"}',
      '{"jsonrpc":"2.0","id":2,"method":"slotSubscribe"}',
      '{"jsonrpc":"2.0","id":3,"method":"slotUnsubscribe","params":[1]}',
      '{"jsonrpc":"2.0","id":4,"method":"slotUnsubscribe","params":[1]}',
    );
    const answers = () => messages.filter((message) => message.id !== undefined);
    await vi.waitFor(() => expect(answers().at(-1)?.id).toBe(4), WAIT);
    expect(answers().map(({ id, error, result }) => [id, error?.code ?? result])).toEqual([
      [null, -32700],
      [1, -32601],
      [2, 1],
      [3, true],
      [4, -32602],
    ]);
  });

  it("notifies once that a signature has reached the requested commitment", async () => {
    const { cluster, wsUrl } = await setUpRunning();
    const { signature } = land(cluster, cluster.latestBlockhash());
    const ask = (commitment: string) => call("signatureSubscribe", signature, { commitment });
    const { messages } = await listen(wsUrl, ask("processed"), ask("confirmed"));
    const notifications = () => messages.filter(({ method }) => method === "signatureNotification");
    await vi.waitFor(() => expect(notifications()).toHaveLength(2), WAIT);
    expect(notifications().map(({ params }) => params?.result["value"])).toEqual([
      { err: null },
      { err: null },
    ]);
    const slot = cluster.currentSlot();
    await vi.waitFor(() => expect(cluster.currentSlot()).toBeGreaterThan(slot + 3), WAIT);
    expect(notifications()).toHaveLength(2);
  });

  it("rejects subscriptions, sends nothing, or sends false slots, as configured", async () => {
    const { cluster, wsUrl } = await setUpRunning();
    const ask = [call("slotsUpdatesSubscribe"), call("slotSubscribe")];
    cluster.behave({ slotsUpdates: "unsupported", slots: "silent" });
    const refused = await listen(wsUrl, ...ask);
    const slot = cluster.currentSlot();
    await vi.waitFor(() => expect(cluster.currentSlot()).toBeGreaterThan(slot + 3), WAIT);
    expect(refused.messages.map(({ error, result }) => error?.code ?? result)).toEqual([-32601, 1]);
    cluster.behave({ bogusSlotsAhead: 5000 });
    const lied = await listen(wsUrl, ...ask);
    const far = () =>
      lied.messages.some(
        ({ params }) => Number(params?.result["slot"]) > cluster.currentSlot() + 4000,
      );
    await vi.waitFor(() => expect(far()).toBe(true), WAIT);
    cluster.behave({ skewSlots: -300 });
    const skewed = await listen(wsUrl, ...ask);
    const skewedSlots = () =>
      skewed.messages
        .filter(({ method }) => method === "slotsUpdatesNotification")
        .map(({ params }) => params?.result["slot"]);
    await vi.waitFor(() => expect(skewedSlots().length).toBeGreaterThan(3), WAIT);
    for (const slot of skewedSlots())
      expect(Number(slot)).toBeLessThanOrEqual(cluster.currentSlot() - 300);
  });
});

describe("the simulated WebSocket with Alpenglow", () => {
  it("confirms and roots a slot together, and reports each root twice", async () => {
    const { wsUrl } = await setUpRunning(alpenglow());
    const { messages } = await listen(wsUrl, call("slotsUpdatesSubscribe"));
    const ends = () =>
      updatesOf(messages).filter(
        ({ type }) => type === "optimisticConfirmation" || type === "root",
      );
    await vi.waitFor(() => expect(ends().length).toBeGreaterThan(9), WAIT);
    const whole = ends().slice(ends().findIndex(({ type }) => type === "optimisticConfirmation"));
    for (let index = 0; index + 3 <= whole.length; index += 3) {
      const [confirmed, root, again] = whole.slice(index, index + 3);
      expect(confirmed?.type).toBe("optimisticConfirmation");
      expect(root).toMatchObject({ type: "root", slot: confirmed?.slot });
      expect(again).toMatchObject({ type: "root", slot: confirmed?.slot });
    }
  });

  it("begins a slot twice when its first bank is given up, and ends it once", async () => {
    const { wsUrl } = await setUpRunning(alpenglow({ twoBanksShare: 1 }));
    const { messages } = await listen(wsUrl, call("slotsUpdatesSubscribe"));
    const slots = (type: string) =>
      updatesOf(messages)
        .filter((each) => each.type === type)
        .map(({ slot }) => slot);
    await vi.waitFor(() => expect(slots("frozen").length).toBeGreaterThan(9), WAIT);
    const ended = slots("frozen").slice(2, 8);
    const begun = ended.map((slot) => slots("createdBank").filter((each) => each === slot).length);
    expect(begun).toEqual(ended.map((slot) => (slot % 4 === 0 ? 2 : 1)));
    expect(new Set(ended).size).toBe(6);
  });

  it("confirms nothing while blocks hold votes only, and uses their slots again", async () => {
    const migration = { afterSlots: 20, voteOnlySlots: 10 };
    const { cluster, wsUrl } = await setUpRunning(alpenglow({ migration }));
    const first = cluster.currentSlot();
    const { messages } = await listen(wsUrl, call("slotsUpdatesSubscribe"));
    await vi.waitFor(() => expect(cluster.counters.migrations).toBe(1), WAIT);
    const updates = () => updatesOf(messages);
    const begun = () => updates().filter(({ type }) => type === "createdBank");
    const again = (slot: number) => begun().filter((each) => each.slot === slot).length;
    await vi.waitFor(() => expect(again(first + 29)).toBe(2), WAIT);
    expect([again(first + 19), again(first + 20), again(first + 28)]).toEqual([1, 2, 2]);
    const back = updates().findLastIndex(
      ({ type, slot }) => type === "createdBank" && slot === first + 20,
    );
    const before = updates().slice(0, back);
    const confirmed = before.filter(({ type }) => type === "optimisticConfirmation");
    expect(confirmed.slice(-2).map(({ slot }) => slot)).toEqual([first + 17, first + 18]);
  });
});
