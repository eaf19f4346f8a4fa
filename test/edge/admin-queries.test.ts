import { describe, expect, it } from "vitest";
import { encodeSignature } from "../../src/core/encoding.ts";
import { adminQueries } from "../../src/edge/admin-queries.ts";
import { createReceipts } from "../../src/receipts/receipts.ts";
import { createRejectionLog } from "../../src/receipts/rejection-log.ts";
import { ACCEPTED } from "../support/accepted.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setup() {
  const clock = createFakeClock();
  const receipts = createReceipts({ clock, slot: () => 7 }, { keepMs: 60_000, entriesMax: 100 });
  const rejections = createRejectionLog(clock);
  let id = 0;
  /** Accepts a transaction of this account; returns its signature. */
  const take = (account: string): string => {
    id += 1;
    const bytes = new Uint8Array(165).fill(id, 1, 65);
    const receivedNs = clock.nowNs();
    const packet = { id, bytes, account, receivedNs, maxRetries: null, offeredLamports: 0 };
    receipts.open(packet, ACCEPTED, receivedNs);
    clock.advance(1000);
    return encodeSignature(bytes, 1);
  };
  return { asked: adminQueries(receipts, rejections), rejections, take };
}

const signaturesOf = (
  response: ReturnType<ReturnType<typeof adminQueries>["receipts"]>,
): unknown =>
  response.kind === "list"
    ? Object(response.list).transactions.map((one: { signature: string }) => one.signature)
    : response.message;

describe("the admin queries of an edge", () => {
  it("return data of the named account only", () => {
    const { asked, rejections, take } = setup();
    const [first, second] = [take("acme"), take("other")];
    rejections.record("acme", { reason: "tip_missing", message: "no tip", data: {} }, "k1");
    expect(asked.receipt(first, "acme")).toMatchObject({ signature: first, state: "accepted" });
    expect(asked.receipt(second, "acme")).toBeNull();
    expect(signaturesOf(asked.receipts("acme", ""))).toEqual([first]);
    expect(signaturesOf(asked.receipts("nobody", ""))).toEqual([]);
    expect(asked.refusals("acme")).toMatchObject([{ reason: "tip_missing", key_id: "k1" }]);
    expect(asked.refusals("other")).toEqual([]);
  });

  it("list as the public API does: newest first, by state, with a limit and a cursor", () => {
    const { asked, take } = setup();
    const [first, second, third] = [take("acme"), take("acme"), take("acme")];
    expect(signaturesOf(asked.receipts("acme", "limit=2"))).toEqual([third, second]);
    expect(signaturesOf(asked.receipts("acme", `before=${second}`))).toEqual([first]);
    expect(signaturesOf(asked.receipts("acme", "state=landed"))).toEqual([]);
    expect(signaturesOf(asked.receipts("acme", "state=landed,accepted&limit=1"))).toEqual([third]);
  });

  it("return an error message for an invalid query", () => {
    const { asked } = setup();
    expect(signaturesOf(asked.receipts("acme", "state=gone"))).toMatch(
      /^state has "gone", some of/,
    );
    expect(signaturesOf(asked.receipts("acme", "stat=landed"))).toMatch(/^the query has "stat"/);
  });
});
