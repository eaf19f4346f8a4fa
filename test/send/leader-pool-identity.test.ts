import { describe, expect, it } from "vitest";
import { freshIdentity } from "../../src/send/identity.ts";
import { planOf, startRig } from "./rig.ts";

const A = "10.0.0.1:8009";
const B = "10.0.0.2:8009";
const C = "10.0.0.3:8009";

const addressesOf = (rig: Awaited<ReturnType<typeof startRig>>): string[] =>
  rig.transport.made.map((it) => it.address);

describe("another identity", () => {
  it("is used by a second connection to each leader, as far as the bound allows", async () => {
    const rig = await startRig(planOf([A], [B, C]), { connectionsMax: 5 });
    for (const address of [A, B, C]) rig.transport.to(address).admit();
    const identity = freshIdentity();
    rig.sender.useIdentity(identity);
    expect(rig.transport.identities).toEqual([identity]);
    expect(rig.sender.outdatedCount).toBe(3);
    rig.clock.advance(100);
    expect(addressesOf(rig)).toEqual([A, B, C, A, B]);
    rig.transport.to(A).admit();
    rig.transport.to(B).admit();
    rig.clock.advance(100);
    expect(addressesOf(rig)).toEqual([A, B, C, A, B, C]);
    rig.transport.to(C).admit();
    rig.clock.advance(100);
    expect(rig.sender.outdatedCount).toBe(0);
    expect(rig.transport.made.map((it) => it.closed)).toEqual([
      ...[true, true, true],
      ...[false, false, false],
    ]);
    expect(rig.sender.counters.identityChanges).toBe(1);
  });

  it("loses no pending delivery: the old connection serves until the new one is live", async () => {
    const rig = await startRig(planOf([A]));
    const old = rig.transport.to(A);
    old.admit();
    rig.send();
    rig.sender.useIdentity(freshIdentity());
    rig.clock.advance(100);
    rig.send();
    expect(old.sent).toHaveLength(2);
    const next = rig.transport.to(A);
    next.admit();
    rig.send();
    rig.clock.advance(100);
    expect([old.closed, next.sent.length]).toEqual([false, 1]);
    old.ack(0);
    old.ack(1);
    rig.clock.advance(100);
    expect(old.closed).toBe(true);
    expect(rig.story(1)).toEqual(["sent", "acked"]);
    expect(rig.story(2)).toEqual(["sent", "acked"]);
  });

  it("is used after the old connection where a leader allows no second one", async () => {
    const rig = await startRig(planOf([A]), { lifetimeMs: 10_000 });
    const old = rig.transport.to(A);
    old.admit();
    rig.clock.advance(10_100);
    rig.transport.to(A).end({ kind: "app", code: 4 });
    rig.send();
    rig.sender.useIdentity(freshIdentity());
    rig.clock.advance(70_000);
    expect([rig.transport.made.length, old.closed]).toEqual([2, false]);
    old.ack(0);
    rig.clock.advance(200);
    expect([rig.transport.made.length, old.closed]).toEqual([3, true]);
  });

  it("is used for a leader that was connecting, once that is done", async () => {
    const rig = await startRig(planOf([A]));
    const first = rig.transport.to(A);
    const identity = freshIdentity();
    rig.sender.useIdentity(identity);
    rig.clock.advance(100);
    expect(rig.transport.made).toEqual([first]);
    first.admit();
    rig.clock.advance(100);
    expect(rig.transport.made).toHaveLength(2);
    expect(rig.transport.identities).toEqual([identity]);
    rig.transport.to(A).admit();
    rig.clock.advance(100);
    expect(rig.transport.made.map((it) => it.closed)).toEqual([true, false]);
    expect(rig.sender.outdatedCount).toBe(0);
  });
});
