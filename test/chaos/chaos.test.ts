/**
 * kill -9 of edge, control and Postgres at random moments, under load. Afterwards: no key lost
 * whose creation was confirmed, no revoked key valid, no request counted twice.
 *
 * CHAOS_ROUNDS and CHAOS_SEED choose the number of rounds and the seed; a failure names both. The
 * victim, time and downtime of each kill are the same for a seed: they are drawn before anything
 * runs, and the client has its own rng, because the machine determines how often it draws. The work
 * that a killed process was doing is not the same.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createRng } from "../support/rng.ts";
import { type Client, createClient, type NotedKey } from "./client.ts";
import { pause, type Service, startService } from "./processes.ts";

const ROUNDS = Number(process.env["CHAOS_ROUNDS"] ?? 6);
const SEED = Number(process.env["CHAOS_SEED"] ?? 1);
const rng = createRng(SEED);
/** Any number except 0. */
const CLIENT_SEED = 1_000_003;

/** One kill: the load before it, and the downtime. */
interface Kill {
  readonly afterMs: number;
  readonly victim: "edge" | "control" | "postgres";
  readonly awayMs: number;
}

interface Round {
  readonly kills: readonly Kill[];
  /** How long the load continues after the last kill. */
  readonly restMs: number;
}

const rounds: readonly Round[] = Array.from({ length: ROUNDS }, () => ({
  kills: Array.from({ length: 1 + rng.below(3) }, () => ({
    afterMs: 100 + rng.below(1_200),
    victim: rng.pick(["edge", "control", "postgres"] as const),
    awayMs: rng.below(300),
  })),
  restMs: rng.below(500),
}));

let service: Service;
let client: Client;
/** Requests in the database when the current edge started, and the client's counts then. */
let counted = 0;
let answered = 0;
let open = 0;
/** From the response to a revocation, just after Postgres returned, until it holds, in ms. */
const appliedAfterMs: number[] = [];
const kills = { edge: 0, control: 0, postgres: 0, blind: 0 };

beforeAll(async () => {
  service = await startService();
  await service.control.start();
  await service.edge.start();
  client = createClient(service, createRng(SEED + CLIENT_SEED));
});
afterAll(async () => {
  const revoked = client.keys.filter((key) => key.revoked === "answered").length;
  const facts = { seed: SEED, rounds: ROUNDS, ...kills, made: client.keys.length, revoked };
  process.stdout.write(`${JSON.stringify({ ...facts, ...client.requests, appliedAfterMs })}\n`);
  await service.stop();
});

/** Counts at most what was sent; responses still in the edge's memory may be missing. */
async function killEdge(): Promise<void> {
  await service.edge.kill();
  kills.edge += 1;
  // A statement of the dead edge may still be running.
  await service.edgeForgotten();
  const now = await service.countedRequests();
  expect(now - counted).toBeLessThanOrEqual(sent() + unanswered());
  counted = now;
  ({ answered, open } = client.requests);
}

const sent = (): number => client.requests.answered - answered;
const unanswered = (): number => client.requests.open - open;

/** Every response of this edge is counted, exactly once. */
async function expectCounted(): Promise<void> {
  let now = 0;
  for (let tries = 0; tries < 900; tries += 1) {
    now = (await service.countedRequests()) - counted;
    if (now >= sent()) break;
    await pause(100);
  }
  // One more period, in which a second count would appear.
  await pause(1_500);
  now = (await service.countedRequests()) - counted;
  expect(now).toBeGreaterThanOrEqual(sent());
  expect(now).toBeLessThanOrEqual(sent() + unanswered());
}

async function kill({ victim, awayMs }: Kill): Promise<void> {
  if (victim === "edge") {
    await killEdge();
    await pause(awayMs);
    await service.edge.start();
  } else if (victim === "control") {
    kills.control += 1;
    await service.control.kill();
    await pause(awayMs);
    await service.control.start();
  } else {
    kills.postgres += 1;
    await service.killPostgres();
    await pause(awayMs);
  }
}

/** Polls until the edge returns `wanted` for every key; returns how long that took. */
async function untilApplied(keys: readonly NotedKey[], wanted: boolean): Promise<number> {
  const startNs = systemClock.nowNs();
  for (const key of keys) {
    while ((await client.probe(key)) !== wanted) {
      const waitedMs = (systemClock.nowNs() - startNs) / 1e6;
      const what = `${wanted ? "not served" : "still served"}: key ${key.id}`;
      if (waitedMs > 90_000) throw new Error(`${what}\n${service.edge.output()}`);
      await pause(5);
    }
  }
  return (systemClock.nowNs() - startNs) / 1e6;
}

const made = (): readonly NotedKey[] => client.keys.filter(({ revoked }) => revoked === "no");
const revoked = (): readonly NotedKey[] =>
  client.keys.filter(({ revoked: state }) => state === "answered");

/** Starts the edge while Postgres is down: it accepts known keys, and rejects revoked ones. */
async function startBlind(): Promise<void> {
  kills.blind += 1;
  // Every request is counted, so the killed edge loses no counts.
  counted = await service.countedRequests();
  ({ answered, open } = client.requests);
  await service.stopPostgres();
  await service.edge.kill();
  await service.edge.start();
  for (const key of revoked()) expect(await client.probe(key)).toBe(false);
  for (const key of made()) expect(await client.probe(key)).toBe(true);
  await service.startPostgres();
  const [key] = made();
  if (key === undefined) return;
  await revokeNow(key);
  appliedAfterMs.push(Math.round(await untilApplied([key], false)));
}

async function revokeNow(key: NotedKey): Promise<void> {
  for (let tries = 0; key.revoked !== "answered"; tries += 1) {
    if (tries > 1_000) throw new Error(`control does not revoke: ${service.control.output()}`);
    await client.revoke(key);
    await pause(50);
  }
}

describe(`${ROUNDS} rounds of kills, seed ${SEED}`, () => {
  for (const [index, round] of rounds.entries()) {
    const victims = round.kills.map(({ victim }) => victim).join(", ");
    it(`round ${index + 1}, ${victims}: nothing lost, wrongly valid or counted twice`, async () => {
      const work = client.run();
      for (const one of round.kills) {
        await pause(one.afterMs);
        await kill(one);
      }
      await pause(round.restMs);
      await work.stop();
      await untilApplied(revoked(), false);
      await untilApplied(made(), true);
      await expectCounted();
      if (index % 3 === 2) await startBlind();
    });
  }

  it("killed each process as often as the seed determines", () => {
    const planned = { edge: 0, control: 0, postgres: 0 };
    for (const { victim } of rounds.flatMap((round) => round.kills)) planned[victim] += 1;
    expect(kills).toMatchObject(planned);
  });
});
