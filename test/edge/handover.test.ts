import { describe, expect, it } from "vitest";
import { createHandover, type HandoverDeps, takingOver } from "../../src/edge/handover.ts";
import { stub } from "../support/stub.ts";

const QUIC = { host: "127.0.0.1", port: 8009, places: [1, 0] };

function setUp(socket: number | null = 7) {
  const steps: string[] = [];
  const step = (name: string) => (): void => void steps.push(name);
  const predecessor = { isGone: false };
  const faults = { journal: null as Error | null };
  const takeBackJournal = (): void => {
    steps.push("take back");
    if (faults.journal !== null) throw faults.journal;
  };
  const deps: HandoverDeps = {
    predecessor,
    keys: { lendJournal: step("lend"), takeBackJournal },
    admin: {
      async start() {
        steps.push("admin starts");
        return { port: 1 };
      },
      async stop() {
        steps.push("admin stops");
      },
    },
    http: { retire: step("http retires") },
    ingressThreads:
      socket === null
        ? null
        : {
            retire: step("threads retire"),
            ...{ takeBack: step("threads take back"), socket, quicSockets: QUIC, quicAloneInMs: 5 },
          },
    clients: { counters: stub<HandoverDeps["clients"]["counters"]>({ connections: 5 }) },
    landing: { inFlight: 3 },
    exporter: stub<HandoverDeps["exporter"]>({ retired: step("receipts retire") }),
    flushEvents: step("flush"),
    httpPort: () => 8080,
  };
  return { steps, faults, predecessor, handover: createHandover(deps) };
}

describe("the hand-over of an edge", () => {
  it("leaves journal and admin listener, and retires threads and server", async () => {
    const { steps, predecessor, handover } = setUp();
    expect(handover.waitMs()).toBe(5);
    expect(handover.listener()).toEqual({ socket: 7, port: 8080, quicSockets: QUIC });
    handover.lend();
    await handover.release();
    handover.retire();
    expect(steps).toEqual([
      "lend",
      "admin stops",
      "threads retire",
      "http retires",
      "receipts retire",
    ]);
    const own = { connections: 5, transactions: 3 };
    expect(handover.inHand()).toEqual({ ...own, hasPredecessor: true });
    predecessor.isGone = true;
    expect(handover.inHand()).toEqual({ ...own, hasPredecessor: false });
    expect(steps.at(-1)).toBe("flush");
  });

  it("takes back what it left, and nothing else", async () => {
    const { steps, handover } = setUp();
    handover.lend();
    await handover.takeBack();
    handover.lend();
    await handover.release();
    await handover.takeBack();
    await handover.takeBack();
    expect(steps.filter((step) => step === "admin starts")).toHaveLength(1);
    expect(steps.filter((step) => step === "take back")).toHaveLength(3);
    // A successor that was not permitted to listen has changed nothing about the sockets.
    expect(steps.filter((step) => step === "threads take back")).toHaveLength(1);
  });

  it("takes the admin listener back also where the journal is still held", async () => {
    const { steps, faults, handover } = setUp();
    faults.journal = new Error("in use");
    handover.lend();
    await handover.release();
    await expect(handover.takeBack()).rejects.toThrow("in use");
    expect(steps.at(-1)).toBe("admin starts");
    // The listener is open, so a later failure does not start it again.
    await expect(handover.takeBack()).rejects.toThrow("in use");
    expect(steps.filter((step) => step === "admin starts")).toHaveLength(1);
  });

  it("has no socket to pass on without ingress threads", () => {
    const { steps, handover } = setUp(null);
    expect(handover.waitMs()).toBe(0);
    expect(handover.listener()).toEqual({ socket: null, port: 8080, quicSockets: null });
    handover.retire();
    expect(steps).toEqual(["http retires", "receipts retire"]);
  });
});

describe("the start of a successor", () => {
  it("waits for its predecessor's permission, ready but for serving", async () => {
    expect(takingOver(null, stub({}), stub({}))).toEqual([]);
    const checks = [
      { name: "serving", ok: false, detail: "" },
      { name: "slot", ok: false, detail: "" },
      { name: "live", ok: true, detail: "" },
    ];
    let asked: readonly string[] = [];
    const listener = { socket: null, port: 1, quicPlaces: [], processNumber: 1 };
    const takeOver = async (missing: () => readonly string[]): Promise<void> => {
      asked = missing();
    };
    const readiness = { ok: false, checks };
    const missingWith = async (sendableCount: number, openingCount: number) => {
      const predecessor = { listener, isGone: false, takeOver, connectReceipts() {} };
      const [step] = takingOver(predecessor, () => readiness, { sendableCount, openingCount });
      await step?.start();
      step?.stop();
      return asked;
    };
    expect(await missingWith(2, 0)).toEqual(["slot"]);
    // A leader is still being connected to, or none that it would send to is live.
    expect(await missingWith(1, 1)).toEqual(["slot", "leaders"]);
    expect(await missingWith(0, 0)).toEqual(["slot", "leaders"]);
  });
});
