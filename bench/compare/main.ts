/**
 * `npm run bench:compare` measures from a client's send to the receive in a real Agave server,
 * through the design of the senders in use and through this project, interleaved in one run; then
 * the highest rate that each sustains. Writes results, a plot and the table of docs/benchmarks.md.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { type CompareOptions, readOptions, USAGE } from "./options.ts";
import { buildProgram } from "./program.ts";
import { type Held, keep, medianOf, type Row, rowText, soakText } from "./report.ts";
import { type Side, type Stage, startStage } from "./sides.ts";
import { type Soak, soak } from "./soak.ts";
import { takeTurn } from "./turn.ts";
import { undisturbed } from "./undisturbed.ts";

const WARM_UP_RATE = 4_000;
const WARM_UP_SECONDS = 10;
/** Transactions of a process that has just started before those that are measured. */
const FRESH_TRANSACTIONS = 1_000;
const LADDER_FROM = 8_000;
const LADDER_STEP = 2_000;
const LADDER_TO = 50_000;
const LADDER_SECONDS = 2;
const LADDER_TRIES = 3;
const HELD_P99_US = 20_000;

if (process.argv.includes("--help")) {
  console.log(USAGE);
} else {
  await run(readOptions(process.argv.slice(2)));
}

async function run(options: CompareOptions): Promise<void> {
  const stage = await startStage(buildProgram(), options.sides, options);
  try {
    if (!options.fresh) for (const side of stage.sides) await warmUp(stage, side, options);
    const rows: Row[] = [];
    for (const rate of options.rates) rows.push(...(await compareAt(stage, options, rate)));
    const held = options.capacity ? await climb(stage, options) : [];
    const soaked = options.soakSeconds === 0 ? null : await soakEdge(stage, options);
    if (options.keep) keep(options, rows, held, soaked);
  } finally {
    await stage.stop();
  }
}

/**
 * Runs until V8 has compiled the path, as it has for all of an edge's life except the first minute,
 * and until the connection's window has grown.
 */
function warmUp(stage: Stage, side: Side, options: CompareOptions) {
  const json = options.endpoint === "json";
  return takeTurn(stage, side, { rate: WARM_UP_RATE, seconds: WARM_UP_SECONDS, json });
}

function measure(stage: Stage, side: Side, options: CompareOptions, rate: number) {
  const json = options.endpoint === "json";
  const load = { rate, seconds: options.seconds, json };
  if (!options.fresh) return undisturbed(() => takeTurn(stage, side, load));
  let fresh = side;
  return undisturbed(async () => {
    fresh = await stage.restart(fresh);
    return takeTurn(stage, fresh, { ...load, warm: FRESH_TRANSACTIONS });
  });
}

/** Runs rounds of all sides; the order rotates, so that no side always follows the same one. */
async function compareAt(stage: Stage, options: CompareOptions, rate: number): Promise<Row[]> {
  const turns = new Map(stage.sides.map((side) => [side.name, [] as Row["rounds"][number][]]));
  const { sides } = stage;
  for (let round = 0; round < options.rounds; round += 1) {
    for (let place = 0; place < sides.length; place += 1) {
      const side = sides[(place + round) % sides.length];
      if (side === undefined) continue;
      const turn = await measure(stage, side, options, rate);
      if (turn.first_refusal !== null) console.error(turn.first_refusal);
      turns.get(side.name)?.push(turn);
    }
  }
  return sides.map(({ name }) => {
    const rounds = turns.get(name) ?? [];
    const row = { side: name, rate, median: medianOf(rounds), rounds };
    console.log(rowText(row));
    return row;
  });
}

/** Finds the highest rate that each side sustains, until it fails three times at one rate. */
async function climb(stage: Stage, options: CompareOptions): Promise<Held[]> {
  const climbers = stage.sides.map((side) => ({ side, held: 0, p99: 0, cpu: 0, down: false }));
  const json = options.endpoint === "json";
  for (let rate = LADDER_FROM; rate <= LADDER_TO; rate += LADDER_STEP) {
    for (const climber of climbers) {
      for (let tried = 0; tried < LADDER_TRIES && !climber.down; tried += 1) {
        const load = { rate, seconds: LADDER_SECONDS, json };
        const turn = await undisturbed(() => takeTurn(stage, climber.side, load)).catch(() => null);
        const p99 = turn?.from_due_us.p99 ?? Number.POSITIVE_INFINITY;
        const clean = turn !== null && turn.lost === 0 && turn.refused === 0 && p99 < HELD_P99_US;
        console.log(
          `${climber.side.name} ${rate}/s: ${clean ? "held" : "not held"}, ` +
            `p99 ${(p99 / 1000).toFixed(1)} ms, lost ${turn?.lost}, ` +
            `${turn?.cpu_us.toFixed(1)} us CPU`,
        );
        if (clean) {
          Object.assign(climber, { held: rate, p99, cpu: turn.cpu_us });
          break;
        }
        climber.down = tried === LADDER_TRIES - 1;
        await sleep(500);
      }
    }
  }
  return climbers.map(({ side, held, p99, cpu }) => ({
    side: side.name,
    rate: held,
    p99_us: p99,
    cpu_us: cpu,
    is_end: held === LADDER_TO,
  }));
}

/** Through the first side that is an edge. */
async function soakEdge(stage: Stage, options: CompareOptions): Promise<Soak> {
  const side = stage.sides.find(({ metricsUrl }) => metricsUrl !== null);
  if (side === undefined) throw new Error("--soak needs an edge among the sides");
  const { soakRate: rate, soakSeconds: seconds, endpoint } = options;
  const result = await soak(stage, side, { rate, seconds, json: endpoint === "json" });
  console.log(soakText(result));
  return result;
}
