import { describe, expect, it } from "vitest";
import { DECODE_ERROR } from "../../../src/core/decode-errors.ts";
import type { Packet, ValidationResult } from "../../../src/core/flow.ts";
import { createDecoder } from "../../../src/decode/decoder.ts";
import { createDispatch } from "../../../src/decode/workers/dispatch.ts";
import { ids, newStage, nextTurn, startedStage, until } from "../../support/decode-stage.ts";
import { DECODER, newPacket, packetOf } from "../../support/packets.ts";

describe("dispatch, inline auto", () => {
  it("decodes a lone transaction during the call", async () => {
    const { accept, responses, dispatch } = await startedStage();
    for (let id = 1; id <= 3; id += 1) {
      accept(newPacket(id));
      expect(ids(responses)).toHaveLength(id);
      await nextTurn();
    }
    expect(responses.every((response) => response.kind === "accepted")).toBe(true);
    expect(dispatch.counters).toMatchObject({ inline: 3, handed: 0 });
  });

  it("decodes the first few of a burst inline and spreads the rest evenly", async () => {
    const { accept, responses, dispatch, workers } = await startedStage();
    for (let id = 1; id <= 9; id += 1) accept(newPacket(id));
    expect(ids(responses)).toEqual([1, 2, 3]);
    expect(dispatch.depth).toBe(6);
    expect(workers.started.map((worker) => worker.work())).toEqual([3, 3]);
    await until(() => responses.length === 9);
    expect(ids(responses).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(dispatch.counters).toMatchObject({ inline: 3, handed: 6, full: 0 });
    expect(dispatch.depth).toBe(0);
    expect(dispatch.verifierCounters.verified).toBe(6);
  });

  it("decodes the configured number inline", async () => {
    const { accept, responses, dispatch, workers } = await startedStage({ inlinePerTurnMin: 5 });
    for (let id = 1; id <= 7; id += 1) accept(newPacket(id));
    expect(ids(responses)).toEqual([1, 2, 3, 4, 5]);
    expect(dispatch.depth).toBe(2);
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 7);
  });

  it("begins every turn inline, even with a transaction pending in a worker", async () => {
    const { accept, responses, workers } = await startedStage();
    for (let id = 1; id <= 4; id += 1) accept(newPacket(id));
    await nextTurn();
    accept(newPacket(5));
    expect(ids(responses)).toEqual([1, 2, 3, 5]);
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 5);
  });

  it("counts small turns towards the next, until a large one ends", async () => {
    const { accept, responses, dispatch, workers } = await startedStage({ inlinePerTurnMin: 8 });
    for (let id = 1; id <= 2; id += 1) {
      accept(newPacket(id));
      await nextTurn();
    }
    for (let id = 3; id <= 9; id += 1) accept(newPacket(id));
    expect(ids(responses)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await nextTurn();
    for (let id = 10; id <= 18; id += 1) accept(newPacket(id));
    expect(dispatch.counters).toMatchObject({ inline: 16, handed: 2, full: 0 });
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 18);
  });

  it("decodes its share of a burst once every worker is behind", async () => {
    const { accept, responses, dispatch, workers } = await startedStage({ ringSlots: 16 });
    for (let id = 1; id <= 25; id += 1) accept(newPacket(id));
    // Three inline first, eight for each of two workers, then three more inline, then the rings.
    expect(ids(responses)).toEqual([1, 2, 3, 20, 21, 22]);
    expect(dispatch.counters).toMatchObject({ inline: 6, handed: 19, full: 0 });
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 25);
  });

  it("decodes a few more inline when every ring is full, then rejects", async () => {
    const { accept, responses, dispatch, workers } = await startedStage();
    for (let id = 1; id <= 12; id += 1) accept(newPacket(id));
    expect(ids(responses)).toEqual([1, 2, 3, 12]);
    expect(responses[3]?.errorCode).toBe(DECODE_ERROR.ring_full);
    await nextTurn();
    for (let id = 13; id <= 16; id += 1) accept(newPacket(id));
    expect(responses[4]).toMatchObject({ id: 13, kind: "accepted" });
    expect(responses[7]).toMatchObject({ id: 16, errorCode: DECODE_ERROR.ring_full });
    expect(dispatch.counters).toMatchObject({ inline: 6, handed: 8, full: 2 });
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 16);
  });

  it("decodes inline while no worker is up", async () => {
    const { accept, responses, workers } = await startedStage({ workers: 1 });
    workers.started[0]?.die();
    await nextTurn();
    for (let id = 1; id <= 3; id += 1) accept(newPacket(id));
    expect(ids(responses)).toEqual([1, 2, 3]);
  });

  it("decodes inline before it was started", () => {
    const { accept, responses } = newStage();
    accept(newPacket(1));
    accept(newPacket(2));
    expect(responses.map((response) => response.kind)).toEqual(["accepted", "accepted"]);
  });
});

describe("dispatch, the other modes", () => {
  it("passes everything to workers with never", async () => {
    const { accept, responses, workers, dispatch } = await startedStage({ inline: "never" });
    accept(newPacket(1));
    expect(responses).toEqual([]);
    workers.started[0]?.work();
    await until(() => responses.length === 1);
    expect(dispatch.counters).toMatchObject({ inline: 0, handed: 1 });
  });

  it("rejects with never while no worker is up", async () => {
    const { accept, responses, workers } = await startedStage({ inline: "never", workers: 1 });
    workers.started[0]?.die();
    await nextTurn();
    accept(newPacket(1));
    expect(responses[0]?.errorCode).toBe(DECODE_ERROR.ring_full);
  });

  for (const options of [{ inline: "always" }, { inline: "never", workers: 0 }] as const) {
    it(`starts no worker with ${JSON.stringify(options)}`, async () => {
      const { accept, responses, workers, dispatch } = newStage(options);
      await dispatch.start();
      for (let id = 1; id <= 5; id += 1) accept(newPacket(id));
      expect(ids(responses)).toEqual([1, 2, 3, 4, 5]);
      expect(workers.started).toHaveLength(0);
      await dispatch.stop();
    });
  }
});

describe("dispatch answers every transaction with its own result", () => {
  it("even when the caller reuses its bytes", async () => {
    const { accept, responses, workers } = await startedStage({ inline: "never" });
    const packets = [1, 2, 3, 4].map((id) => newPacket(id));
    for (const packet of packets) {
      const lent = packet.bytes.slice();
      accept({ ...packet, bytes: lent });
      lent.fill(0xee);
    }
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 4);
    for (const response of responses) {
      expect(response.kind).toBe("accepted");
      const sent = packets.find((packet) => packet.id === response.id);
      expect(response.bytes.equals(sent?.bytes ?? new Uint8Array(0))).toBe(true);
    }
  });

  it("with its own validation result and fields", async () => {
    const { dispatch, workers } = await startedStage({ inline: "never", workers: 1 });
    const decoder = createDecoder(DECODER);
    const spoiled = newPacket(3).bytes.slice();
    spoiled[spoiled.length - 1] = (spoiled[spoiled.length - 1] ?? 0) ^ 1;
    const packets = [
      newPacket(1),
      newPacket(2, 999),
      packetOf(3, spoiled),
      packetOf(4, new Uint8Array(0)),
    ];
    const results: [Packet, ValidationResult][] = [];
    for (const packet of packets) {
      dispatch.accept({ ...packet, maxRetries: packet.id }, (answered, validation) => {
        results.push([{ ...answered, bytes: answered.bytes.slice() }, validation]);
      });
    }
    workers.started[0]?.work();
    await until(() => results.length === 4);
    for (const [i, packet] of packets.entries()) {
      expect(results[i]?.[0]).toEqual({ ...packet, maxRetries: packet.id });
      expect(results[i]?.[1]).toEqual(decoder.decode(packet.bytes));
    }
  });

  it("for bodies of the largest size and above it", async () => {
    const { accept, responses, workers, dispatch } = await startedStage({ inline: "never" });
    for (const size of [4095, 4096]) accept(packetOf(size, new Uint8Array(size).fill(0x81)));
    expect(dispatch.counters).toMatchObject({ inline: 0, handed: 2 });
    for (const size of [4097, 16_384]) accept(packetOf(size, new Uint8Array(size).fill(0x81)));
    expect(ids(responses)).toEqual([4097, 16_384]);
    for (const worker of workers.started) worker.work();
    await until(() => responses.length === 4);
    expect(responses.every((response) => response.kind === "rejected")).toBe(true);
  });

  it("when a callback submits the next one", async () => {
    const { dispatch, workers } = await startedStage({ inline: "never", workers: 1 });
    const results: string[] = [];
    const next = (packet: Packet): void => {
      const bytes = Buffer.from(packet.bytes);
      if (packet.id < 40) dispatch.accept(newPacket(packet.id + 4), next);
      expect(Buffer.from(packet.bytes).equals(bytes)).toBe(true);
      results.push(String(packet.id));
    };
    for (let id = 1; id <= 4; id += 1) dispatch.accept(newPacket(id), next);
    await until(() => {
      workers.started[0]?.work();
      return results.length >= 20 && dispatch.depth === 0;
    });
    expect(new Set(results).size).toBe(results.length);
  });

  it("when the decoder of this thread throws", () => {
    const { clock, workers, responses, done, log } = newStage();
    const decoder = {
      decode(): ValidationResult {
        throw new Error("a bug");
      },
    };
    const deps = { clock, workers, decoder, log };
    const dispatch = createDispatch(deps, { inline: "always", workers: 0, decoder: DECODER });
    dispatch.accept(newPacket(1), done);
    expect(responses[0]?.errorCode).toBe(DECODE_ERROR.worker_died);
    expect(dispatch.counters.failed).toBe(1);
  });
});
