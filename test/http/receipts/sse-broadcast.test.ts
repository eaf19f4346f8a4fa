import { describe, expect, it } from "vitest";
import {
  RECEIPT_STREAM_CHARS_PER_ROUND,
  RECEIPT_STREAM_PASS_STEPS_MAX,
} from "../../../src/http/limits.ts";
import { createLive, type Listener } from "../../../src/http/receipts/sse-broadcast.ts";

/** Changes whose account a test chooses, and how often they were checked. */
function setup(eventChars = 10) {
  const log: string[] = [];
  const looks = { changes: 0, receipts: 0 };
  const changes = {
    first: 1,
    get next() {
      return log.length + 1;
    },
  };
  const live = createLive<Listener>(
    {
      changes,
      eachChange(from, { wants, stepsMax }, take) {
        const end = Math.min(changes.next, from + stepsMax);
        for (let number = from; number < end; number += 1) {
          looks.changes += 1;
          const account = log[number - 1] ?? "";
          if (wants(account)) take(number, "sent", account, () => ({ account }));
        }
        return end;
      },
    },
    (number) => {
      looks.receipts += 1;
      return `${number} `.padEnd(eventChars, ".");
    },
  );
  const listen = (account: string, states: Listener["states"] = null): Listener => {
    const listener = { account, states, next: changes.next, text: "" };
    live.add(listener);
    return listener;
  };
  return { log, looks, changes, live, listen };
}

const always = (): boolean => true;

describe("streams that have read all there was", () => {
  it("are notified in one pass, with one text for each account", () => {
    const { log, looks, live, listen } = setup();
    const own = Array.from({ length: 8 }, () => listen("acme"));
    const others = Array.from({ length: 100 }, (_, place) => listen(`other ${place}`));
    const landings = listen("acme", ["landed"]);
    log.push("acme", "nobody", "other 7", "acme");
    expect(live.tell(always)).toBe(17);
    expect(looks).toEqual({ changes: 4, receipts: 3 });
    for (const { text } of own) expect(text).toBe("1 ........4 ........");
    expect(others.filter(({ text }) => text !== "").map(({ account }) => account)).toEqual([
      "other 7",
    ]);
    expect(landings.text).toBe("");
    for (const each of [...own, ...others, landings]) expect(live.isAtHead(each)).toBe(true);
    expect(live.tell(always)).toBe(0);
  });

  it("are skipped while they read nothing, and resume at the head", () => {
    const { log, live, listen } = setup();
    const [slow, withFastProperties] = [listen("acme"), listen("acme")];
    log.push("acme");
    live.tell((listener) => listener !== slow);
    expect([slow.text, slow.next, live.isAtHead(slow)]).toEqual(["", 1, false]);
    expect([withFastProperties.text !== "", live.isAtHead(withFastProperties)]).toEqual([
      true,
      true,
    ]);
    slow.next = 2;
    log.push("acme");
    expect(live.tell(always)).toBe(2);
  });

  it("continue alone from the first event that exceeds one round", () => {
    const chars = RECEIPT_STREAM_CHARS_PER_ROUND / 4;
    const { log, live, listen } = setup(chars);
    const listener = listen("acme");
    log.push(...Array.from({ length: 6 }, () => "acme"));
    expect(live.tell(always)).toBe(4);
    expect([listener.text.length, listener.next]).toEqual([4 * chars, 5]);
    expect(live.isAtHead(listener)).toBe(false);
  });

  it("continue alone if their position was evicted, and a pass is bounded", () => {
    const { log, looks, changes, live, listen } = setup();
    const listener = listen("acme");
    log.push(...Array.from({ length: RECEIPT_STREAM_PASS_STEPS_MAX + 5 }, () => "nobody"));
    live.tell(always);
    expect(looks.changes).toBe(RECEIPT_STREAM_PASS_STEPS_MAX);
    expect(live.isAtHead(listener)).toBe(true);
    changes.first = changes.next - 1;
    live.tell(always);
    expect(looks.changes).toBe(RECEIPT_STREAM_PASS_STEPS_MAX);
    expect(live.isAtHead(listener)).toBe(false);
  });

  it("begin with the next event, however many passed without a listener", () => {
    const { log, looks, live, listen } = setup();
    live.remove(listen("acme"));
    log.push("acme", "acme");
    const listener = listen("acme");
    log.push("acme");
    expect(live.tell(always)).toBe(1);
    expect(looks.changes).toBe(1);
    expect(live.isAtHead(listener)).toBe(true);
  });
});
