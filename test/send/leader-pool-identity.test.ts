import { describe, expect, it } from "vitest";
import { freshIdentity } from "../../src/send/identity.ts";
import { planOf, startFixture } from "./fixture.ts";

const A = "10.0.0.1:8009";
const B = "10.0.0.2:8009";
const C = "10.0.0.3:8009";

const addressesOf = (fixture: Awaited<ReturnType<typeof startFixture>>): string[] =>
  fixture.transport.made.map((it) => it.address);

describe("another identity", () => {
  it("is used by a second connection to each leader, as far as the bound allows", async () => {
    const fixture = await startFixture(planOf([A], [B, C]), { connectionsMax: 5 });
    for (const address of [A, B, C]) fixture.transport.to(address).admit();
    const identity = freshIdentity();
    fixture.sender.useIdentity(identity);
    expect(fixture.transport.identities).toEqual([identity]);
    expect(fixture.sender.outdatedCount).toBe(3);
    fixture.clock.advance(100);
    expect(addressesOf(fixture)).toEqual([A, B, C, A, B]);
    fixture.transport.to(A).admit();
    fixture.transport.to(B).admit();
    fixture.clock.advance(100);
    expect(addressesOf(fixture)).toEqual([A, B, C, A, B, C]);
    fixture.transport.to(C).admit();
    fixture.clock.advance(100);
    expect(fixture.sender.outdatedCount).toBe(0);
    expect(fixture.transport.made.map((it) => it.closed)).toEqual([
      ...[true, true, true],
      ...[false, false, false],
    ]);
    expect(fixture.sender.counters.identityChanges).toBe(1);
  });

  it("loses no pending delivery: the old connection serves until the new one is live", async () => {
    const fixture = await startFixture(planOf([A]));
    const old = fixture.transport.to(A);
    old.admit();
    fixture.send();
    fixture.sender.useIdentity(freshIdentity());
    fixture.clock.advance(100);
    fixture.send();
    expect(old.sent).toHaveLength(2);
    const next = fixture.transport.to(A);
    next.admit();
    fixture.send();
    fixture.clock.advance(100);
    expect([old.closed, next.sent.length]).toEqual([false, 1]);
    old.ack(0);
    old.ack(1);
    fixture.clock.advance(100);
    expect(old.closed).toBe(true);
    expect(fixture.story(1)).toEqual(["sent", "acked"]);
    expect(fixture.story(2)).toEqual(["sent", "acked"]);
  });

  it("loses no delivery of another thread whose event was not read yet", async () => {
    const fixture = await startFixture(planOf([A]));
    const old = fixture.transport.to(A);
    old.admit();
    fixture.sender.useIdentity(freshIdentity());
    fixture.clock.advance(100);
    fixture.transport.to(A).admit();
    const wasClosed: boolean[] = [];
    fixture.transport.flushEvents = () => void wasClosed.push(old.closed);
    const pollMs = 50;
    fixture.clock.advance(pollMs);
    expect([wasClosed, old.closed]).toEqual([[false], true]);
  });

  it("is used after the old connection where a leader allows no second one", async () => {
    const fixture = await startFixture(planOf([A]), { lifetimeMs: 10_000 });
    const old = fixture.transport.to(A);
    old.admit();
    fixture.clock.advance(10_100);
    fixture.transport.to(A).end({ kind: "app", code: 4 });
    fixture.send();
    fixture.sender.useIdentity(freshIdentity());
    // One is always in flight.
    for (let sent = 0; sent < 8; sent += 1) {
      fixture.clock.advance(9_000);
      fixture.send();
      old.ack(sent);
    }
    expect([fixture.transport.made.length, old.closed]).toEqual([2, false]);
    old.ack(8);
    fixture.clock.advance(200);
    expect([fixture.transport.made.length, old.closed]).toEqual([3, true]);
  });

  it("is used for a leader that was connecting, once that is done", async () => {
    const fixture = await startFixture(planOf([A]));
    const first = fixture.transport.to(A);
    const identity = freshIdentity();
    fixture.sender.useIdentity(identity);
    fixture.clock.advance(100);
    expect(fixture.transport.made).toEqual([first]);
    first.admit();
    fixture.clock.advance(100);
    expect(fixture.transport.made).toHaveLength(2);
    expect(fixture.transport.identities).toEqual([identity]);
    fixture.transport.to(A).admit();
    fixture.clock.advance(100);
    expect(fixture.transport.made.map((it) => it.closed)).toEqual([true, false]);
    expect(fixture.sender.outdatedCount).toBe(0);
  });
});
