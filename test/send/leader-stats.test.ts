import { describe, expect, it } from "vitest";
import { Card, dialectOfVersion, Scorecard } from "../../src/send/leader-stats.ts";

const ADDRESS = "10.0.0.1:8009";

describe("the scorecard", () => {
  it("guesses of a leader that was never met, and shows nothing it did not measure", () => {
    const scorecard = new Scorecard();
    expect([scorecard.roundTripMs("A"), scorecard.neededMs("A")]).toEqual([100, 100]);
    expect(scorecard.leadMs("A")).toBe(Number.POSITIVE_INFINITY);
    expect(scorecard.size).toBe(0);
    scorecard.card("A", ADDRESS);
    expect(scorecard.view()[0]).toMatchObject({
      reachable: null,
      dialect: "unknown",
      rttMs: null,
      handshakeMs: null,
      neededMs: null,
      ackedShare: null,
      landedShare: null,
      ends: {},
    });
  });

  it("keeps means of what leaders need", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    card.rttUs = 40_000;
    expect(scorecard.neededMs("A")).toBe(40);
    card.ack(50_000);
    card.ack(60_000);
    expect(scorecard.neededMs("A")).toBe(51);
    expect(scorecard.roundTripMs("A")).toBe(40);
  });

  it("tells what share was acknowledged, and landed when it was aimed at", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    card.sent = 4;
    card.ack(1_000);
    scorecard.targeted("A");
    scorecard.targeted("A");
    scorecard.landed("A");
    scorecard.landed("nobody");
    expect(scorecard.view()[0]).toMatchObject({ ackedShare: 0.25, landedShare: 0.5 });
  });

  it("forgets the leader that was connected to longest ago at its bound", () => {
    const scorecard = new Scorecard({ leadersMax: 2 });
    scorecard.card("A", ADDRESS).rttUs = 1_000;
    scorecard.card("B", ADDRESS).rttUs = 2_000;
    scorecard.card("A", ADDRESS);
    scorecard.card("C", ADDRESS);
    expect(scorecard.size).toBe(2);
    expect([scorecard.roundTripMs("A"), scorecard.roundTripMs("B")]).toEqual([1, 100]);
  });

  it("shows those with most copies first, as many as asked for", () => {
    const scorecard = new Scorecard();
    for (const [identity, sent] of [
      ["A", 1],
      ["B", 3],
      ["C", 2],
    ] as const) {
      scorecard.card(identity, ADDRESS).sent = sent;
    }
    expect(scorecard.view(2).map((row) => row.identity)).toEqual(["B", "C"]);
  });
});

describe("the census", () => {
  it("counts leaders by what they run and whether they are reached", () => {
    const scorecard = new Scorecard({ versionOf: (identity) => (identity === "A" ? null : "4.2") });
    scorecard.card("A", ADDRESS);
    for (const identity of ["B", "C"]) scorecard.card(identity, ADDRESS).admit(128, false);
    const card = scorecard.card("D", ADDRESS);
    for (let count = 0; count < 3; count += 1) card.end("unanswered", false, false);
    expect(scorecard.census()).toEqual([
      { dialect: "unknown", reachable: "unknown", count: 1 },
      { dialect: "agave", reachable: "yes", count: 2 },
      { dialect: "agave", reachable: "no", count: 1 },
    ]);
  });
});

describe("a leader's standing", () => {
  it("falls with each end by its row and rises when it is reached", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    card.end("unanswered", false, false);
    card.end("unanswered", false, false);
    expect(scorecard.standingOf("A")).toBe(0.25);
    expect(scorecard.view()[0]).toMatchObject({ reachable: false, ends: { unanswered: 2 } });
    card.admit(128, false);
    expect(scorecard.standingOf("A")).toBe(0.625);
    expect(scorecard.view()[0]).toMatchObject({ reachable: true, streamsMax: 128 });
  });

  it("does not tell whether it was reached last, however low or high", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    const reachable = () => scorecard.view()[0]?.reachable;
    const told = [reachable()];
    for (const happens of [
      () => card.end("local", false, false),
      () => card.admit(128, false),
      () => card.end("unanswered", false, false),
      () => card.ack(1_000),
      () => card.end("silent", true, true),
    ]) {
      happens();
      told.push(reachable());
    }
    expect(told).toEqual([null, false, true, false, true, true]);
  });
});

describe("the lead of a connection", () => {
  it("shrinks with each eviction of an idle one, down to two handshakes and some room", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    card.established(100_000, false);
    const leads: number[] = [];
    for (let count = 0; count < 6; count += 1) {
      card.end("evicted", true, false);
      leads.push(scorecard.leadMs("A"));
    }
    expect(leads).toEqual([2_000, 1_000, 500, 350, 350, 350]);
  });

  it("is not touched by an eviction after the turn, and is back after one that went well", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    card.end("evicted", true, true);
    expect(scorecard.leadMs("A")).toBe(Number.POSITIVE_INFINITY);
    card.end("evicted", true, false);
    card.ack(1_000);
    expect(scorecard.leadMs("A")).toBe(Number.POSITIVE_INFINITY);
  });

  it("leaves time for the check's answer and another connection", () => {
    const scorecard = new Scorecard();
    const card = scorecard.card("A", ADDRESS);
    card.rttUs = 50_000;
    card.established(100_000, false);
    expect([scorecard.answerMs("A"), scorecard.checkLeadMs("A")]).toEqual([250, 450]);
  });
});

describe("a leader's dialect", () => {
  it.each([
    [null, "unknown"],
    ["", "unknown"],
    ["main", "unknown"],
    ["0.708.40300", "firedancer"],
    ["26.8.1", "firedancer"],
    ["4.2.1", "agave"],
    ["v3.1.0-beta.2", "agave"],
  ])("by its version %j is %s", (version, dialect) => {
    expect(dialectOfVersion(version)).toBe(dialect);
  });

  it("by what it does goes before what it says", () => {
    const scorecard = new Scorecard({ versionOf: () => "4.2.1" });
    const card = new Card("A", ADDRESS);
    expect(scorecard.dialectOf(card)).toBe("agave");
    card.established(1_000, true);
    expect(scorecard.dialectOf(card)).toBe("firedancer");
    const wide = new Card("B", ADDRESS);
    wide.admit(2 ** 60, false);
    expect(scorecard.dialectOf(wide)).toBe("firedancer");
    const full = new Card("C", ADDRESS);
    full.end("too_many", false, false);
    expect(new Scorecard({ versionOf: () => "0.708.1" }).dialectOf(full)).toBe("agave");
  });
});
