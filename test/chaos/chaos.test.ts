/**
 * kill -9 of edge, control and Postgres at random moments, under work. Afterwards: no key lost that
 * was answered as made, no revoked key alive, no request counted twice.
 *
 * CHAOS_ROUNDS and CHAOS_SEED choose how many rounds and which; a failure names both. Which process
 * is killed and when is the same for a seed; what it was doing then is not.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createDice } from "../support/dice.ts";
import { type Client, createClient, type NotedKey } from "./client.ts";
import { type Managed, pause, type Service, startService } from "./processes.ts";

const ROUNDS = Number(process.env["CHAOS_ROUNDS"] ?? 6);
const SEED = Number(process.env["CHAOS_SEED"] ?? 1);
const dice = createDice(SEED);

let service: Service;
let client: Client;
/** Requests in the database when the edge that runs now began, and the client's counts then. */
let counted = 0;
let answered = 0;
let open = 0;
/** From the answer to a revocation, just after Postgres came back, until it holds, in ms. */
const heardAfterMs: number[] = [];
const kills = { edge: 0, control: 0, postgres: 0, blind: 0 };

beforeAll(async () => {
  service = await startService();
  await service.control.start();
  await service.edge.start();
  client = createClient(service, dice);
});
afterAll(async () => {
  const revoked = client.keys.filter((key) => key.revoked === "answered").length;
  const facts = { seed: SEED, rounds: ROUNDS, ...kills, made: client.keys.length, revoked };
  process.stdout.write(`${JSON.stringify({ ...facts, ...client.requests, heardAfterMs })}\n`);
  await service.stop();
});

/** No more may be counted than was sent, and what was answered may be missing from its memory. */
async function killEdge(): Promise<void> {
  await service.edge.kill();
  kills.edge += 1;
  // A statement of the dead edge may still be under way.
  await service.edgeForgotten();
  const now = await service.countedRequests();
  expect(now - counted).toBeLessThanOrEqual(sent() + unanswered());
  counted = now;
  ({ answered, open } = client.requests);
}

const sent = (): number => client.requests.answered - answered;
const unanswered = (): number => client.requests.open - open;

/** All that this edge answered is counted, and nothing twice. */
async function expectCounted(): Promise<void> {
  let now = 0;
  for (let tries = 0; tries < 900; tries += 1) {
    now = (await service.countedRequests()) - counted;
    if (now >= sent()) break;
    await pause(100);
  }
  // One more period, in which what was counted twice would come.
  await pause(1_500);
  now = (await service.countedRequests()) - counted;
  expect(now).toBeGreaterThanOrEqual(sent());
  expect(now).toBeLessThanOrEqual(sent() + unanswered());
}

async function killOne(): Promise<void> {
  const victim = dice.pick(["edge", "control", "postgres"] as const);
  if (victim === "edge") {
    await killEdge();
    await pause(dice.below(300));
    await service.edge.start();
  } else if (victim === "control") {
    kills.control += 1;
    await restarted(service.control);
  } else {
    kills.postgres += 1;
    await service.killPostgres();
    await pause(dice.below(300));
  }
}

async function restarted(one: Managed): Promise<void> {
  await one.kill();
  await pause(dice.below(300));
  await one.start();
}

/** Asks until the edge says `wanted` of every key; answers how long that took. */
async function untilHeard(keys: readonly NotedKey[], wanted: boolean): Promise<number> {
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

/** The edge starts while Postgres is down: it serves whom it knew, and nobody it heard revoked. */
async function startBlind(): Promise<void> {
  kills.blind += 1;
  // Everything is counted, so nothing is in the memory of the edge that is killed.
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
  heardAfterMs.push(Math.round(await untilHeard([key], false)));
}

async function revokeNow(key: NotedKey): Promise<void> {
  for (let tries = 0; key.revoked !== "answered"; tries += 1) {
    if (tries > 1_000) throw new Error(`control does not revoke: ${service.control.output()}`);
    await client.revoke(key);
    await pause(50);
  }
}

describe(`${ROUNDS} rounds of kills, seed ${SEED}`, () => {
  for (let round = 1; round <= ROUNDS; round += 1) {
    it(`round ${round}: nothing lost, nobody let in, nothing counted twice`, async () => {
      const work = client.run();
      for (let count = 1 + dice.below(3); count > 0; count -= 1) {
        await pause(100 + dice.below(1_200));
        await killOne();
      }
      await pause(dice.below(500));
      await work.stop();
      await untilHeard(revoked(), false);
      await untilHeard(made(), true);
      await expectCounted();
      if (round % 3 === 0) await startBlind();
    });
  }
});
