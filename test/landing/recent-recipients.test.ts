import { describe, expect, it } from "vitest";
import { NS_PER_MS } from "../../src/core/clock.ts";
import { RESEND_SAME_LEADER_MS } from "../../src/landing/limits.ts";
import { deliveryTagOf, RecentRecipients, tagOf } from "../../src/landing/recent-recipients.ts";

const PAUSE_NS = RESEND_SAME_LEADER_MS * NS_PER_MS;
const [A, B, C] = [tagOf("LeaderA"), tagOf("LeaderB"), tagOf("LeaderC")];
const FIRST = deliveryTagOf(1, 0);
const [HERE, THERE] = [tagOf("10.0.0.1:8009"), tagOf("10.0.0.2:8009")];

describe("marks of leaders", () => {
  it("allow a leader again once it would not drop the bytes any more", () => {
    const recipients = new RecentRecipients(2, 4);
    recipients.add(1, A, HERE, 1_000, FIRST);
    expect(recipients.allows(1, A, HERE, 1_000)).toBe(false);
    expect(recipients.allows(1, A, HERE, 1_000 + PAUSE_NS - 1)).toBe(false);
    expect(recipients.allows(1, A, HERE, 1_000 + PAUSE_NS)).toBe(true);
  });

  it("know a leader by its identity as well as by its address", () => {
    const recipients = new RecentRecipients(1, 4);
    recipients.add(0, A, HERE, 5, FIRST);
    expect(recipients.allows(0, A, THERE, 6)).toBe(false);
    expect(recipients.allows(0, B, HERE, 6)).toBe(false);
    expect(recipients.allows(0, B, THERE, 6)).toBe(true);
  });

  it("are cleared together, those of a later copy excepted", () => {
    const recipients = new RecentRecipients(2, 2);
    recipients.add(0, A, HERE, 5, FIRST);
    recipients.add(1, B, THERE, 5, FIRST);
    recipients.clearAll(6);
    recipients.add(1, A, HERE, 6, FIRST);
    expect([0, 1].map((row) => recipients.allows(row, A, HERE, 7))).toEqual([true, false]);
    expect(recipients.allows(1, B, THERE, 7)).toBe(true);
  });

  it("are each transaction's own", () => {
    const recipients = new RecentRecipients(3, 2);
    recipients.add(1, A, HERE, 5, FIRST);
    expect([0, 1, 2].map((row) => recipients.allows(row, A, HERE, 6))).toEqual([true, false, true]);
  });

  it("are moved by a later copy for the same leader, and take no second place", () => {
    const recipients = new RecentRecipients(1, 2);
    recipients.add(0, A, HERE, 0, FIRST);
    recipients.add(0, A, HERE, PAUSE_NS, FIRST);
    expect(recipients.allows(0, A, HERE, PAUSE_NS + 1)).toBe(false);
    expect(recipients.allows(0, B, THERE, PAUSE_NS + 1)).toBe(true);
  });

  it("allow no leader while every mark is recent", () => {
    const recipients = new RecentRecipients(1, 2);
    recipients.add(0, A, HERE, 0, FIRST);
    recipients.add(0, B, THERE, 10, FIRST);
    expect(recipients.allows(0, C, tagOf("10.0.0.3:8009"), 11)).toBe(false);
    expect(recipients.allows(0, C, tagOf("10.0.0.3:8009"), PAUSE_NS)).toBe(true);
  });

  it("give their oldest place to a copy that went out all the same", () => {
    const recipients = new RecentRecipients(1, 2);
    recipients.add(0, A, HERE, 0, FIRST);
    recipients.add(0, B, THERE, 10, FIRST);
    recipients.add(0, C, tagOf("10.0.0.3:8009"), 20, FIRST);
    expect(recipients.allows(0, B, THERE, 10 + PAUSE_NS - 1)).toBe(false);
    expect(recipients.allows(0, A, HERE, 10 + PAUSE_NS)).toBe(true);
  });

  it("are removed for a delivery that was never sent, or all together", () => {
    const recipients = new RecentRecipients(1, 3);
    recipients.add(0, A, HERE, 0, FIRST);
    recipients.add(0, B, THERE, 0, FIRST);
    recipients.remove(0, A, HERE, FIRST);
    expect(recipients.allows(0, A, HERE, 1)).toBe(true);
    expect(recipients.allows(0, B, THERE, 1)).toBe(false);
    recipients.clear(0);
    expect(recipients.allows(0, B, THERE, 1)).toBe(true);
  });

  it("stay where another delivery for the same leader was never sent", () => {
    const recipients = new RecentRecipients(1, 3);
    recipients.add(0, A, HERE, 0, FIRST);
    recipients.add(0, A, HERE, PAUSE_NS, deliveryTagOf(1, 1));
    recipients.remove(0, A, HERE, FIRST);
    recipients.remove(0, A, HERE, deliveryTagOf(2, 1));
    expect(recipients.allows(0, A, HERE, PAUSE_NS + 1)).toBe(false);
    recipients.remove(0, A, HERE, deliveryTagOf(1, 1));
    expect(recipients.allows(0, A, HERE, PAUSE_NS + 1)).toBe(true);
  });
});
