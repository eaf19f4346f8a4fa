/**
 * `npm run load -- --quic`: the same load over QUIC and over HTTP through one edge, in turns, and
 * what the edge withstands: handshakes that never finish, an account far above its limit, wrong
 * signatures, silent connections, and a key that is revoked while it has many connections.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Quantiles } from "../compare/turn.ts";
import { cpuUs, rssMb } from "../load/children.ts";
import { commit, machine } from "../machine.ts";
import { type QuicLoadOptions, readOptions, USAGE } from "./options.ts";
import { type BenchAccount, newAccounts, type Stage, startStage } from "./stage.ts";
import { type Group, type GroupResult, type Transport, type Turn, takeTurn } from "./turn.ts";

const WARM_UP_RATE = 1_000;
const WARM_UP_SECONDS = 5;
/** How long silent connections are watched, after they have opened. */
const IDLE_SECONDS = 60;
const SETTLE_MS = 2_000;
const GREEDY_ACCOUNTS = 10;
const GREEDY_CONNECTIONS = 10;
const GREEDY_TIMES = 20;
/** Of its limit, what an account sends that keeps to it. */
const WITHIN_LIMIT = 0.9;
/** How many seconds of memory the first and the last figures are of. */
const MEMORY_SAMPLES = 10;
const REVOKE_RATE = 1_000;
const REVOKE_SECONDS = 4;

/** Runs what the command line says; prints only. */
export async function runQuicLoad(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) {
    console.log(USAGE);
    return;
  }
  const options = readOptions(args);
  const accounts = newAccounts(Math.max(options.accounts, GREEDY_ACCOUNTS));
  const stage = await startStage(options, accounts);
  try {
    const { cpu, cores } = machine();
    console.log(`${cores} cores of ${cpu}, Node ${process.version}, commit ${commit()}.`);
    const used = accounts.slice(0, options.accounts);
    // First, because the memory of connections that were closed is used again.
    if (options.idle > 0) await holdIdle(stage, options, used);
    const warmUp = [groupOf(used, WARM_UP_RATE, options)];
    // What the edge withstands is measured with the last two, whichever the table has.
    for (const side of new Set([...sidesOf(options), "quic", options.endpoint] as const)) {
      await takeTurn(stage, side, warmUp, WARM_UP_SECONDS);
    }
    if (options.rates.length > 0) await compareSides(stage, options, used);
    if (options.handshakes > 0) await withstandHandshakes(stage, options, used);
    if (options.greedy > 0) await withstandGreed(stage, options, accounts);
    if (options.flood > 0) await withstandFlood(stage, options, accounts);
    if (options.revoke > 0) await revoke(stage, options, accounts);
  } finally {
    await stage.stop();
  }
}

function sidesOf({ libraries, endpoint }: QuicLoadOptions): readonly Transport[] {
  if (!libraries) return ["quic", endpoint];
  return ["tpu", "touchdown", "reqwest", "reqwest-json"];
}

function groupOf(
  accounts: readonly BenchAccount[],
  rate: number,
  { connections }: QuicLoadOptions,
): Group {
  return { rate, accounts, connections };
}

async function compareSides(
  stage: Stage,
  options: QuicLoadOptions,
  accounts: readonly BenchAccount[],
): Promise<void> {
  const head = ["tx/s", "side", "late p99", "sent to leader p50", "p99", "p99.9"];
  head.push("due to leader p50", "p99", "lost", "unsent", "refused", "edge CPU a tx");
  console.log(`| ${head.join(" | ")} |\n|${"---|".repeat(head.length)}`);
  const sides = sidesOf(options);
  for (const rate of options.rates) {
    const turns = new Map(sides.map((side) => [side, [] as Turn[]]));
    for (let round = 0; round < options.rounds; round += 1) {
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
        const groups = [groupOf(accounts, rate, options)];
        turns.get(side)?.push(await takeTurn(stage, side, groups, options.seconds));
      }
    }
    for (const [side, taken] of turns) console.log(rowOf(rate, side, taken));
  }
}

function rowOf(rate: number, side: Transport, turns: readonly Turn[]): string {
  const cells = [
    rate,
    side,
    ...[
      (turn: Turn) => turn.late_us.p99,
      (turn: Turn) => turn.one_way_us.p50,
      (turn: Turn) => turn.one_way_us.p99,
      (turn: Turn) => turn.one_way_us.p999,
      (turn: Turn) => turn.from_due_us.p50,
      (turn: Turn) => turn.from_due_us.p99,
    ].map((figure) => `${rangeOf(turns.map(figure), 0)} us`),
    turns.reduce((sum, turn) => sum + turn.lost - silentRefusals(side, turn), 0),
    turns.reduce((sum, { ends }) => sum + ends.unsent, 0),
    turns.reduce((sum, turn) => sum + refusals(turn), 0),
    `${rangeOf(
      turns.map((turn) => turn.cpu_us),
      1,
    )} us`,
  ];
  return `| ${cells.join(" | ")} |`;
}

/** What the edge refused; over QUIC most of it shows on no stream, so the generator misses it. */
function refusals({ outcomes }: Turn): number {
  return Object.entries(outcomes).reduce(
    (sum, [outcome, count]) => sum + (outcome === "accepted" ? 0 : count),
    0,
  );
}

function silentRefusals(side: Transport, turn: Turn): number {
  return side === "quic" || side === "tpu" ? refusals(turn) - turn.refused : 0;
}

function medianOf(values: readonly number[]): number {
  return quartileOf(values, 2);
}

function quartileOf(values: readonly number[], quarters: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length * quarters) / 4)] ?? Number.NaN;
}

/** The median, and between which values the middle half lies. */
function rangeOf(values: readonly number[], digits: number): string {
  const [low, middle, high] = [1, 2, 3].map((at) => quartileOf(values, at).toFixed(digits));
  return `${middle} (${low}-${high})`;
}

async function withstandHandshakes(
  stage: Stage,
  options: QuicLoadOptions,
  accounts: readonly BenchAccount[],
): Promise<void> {
  const rate = options.rates[0] ?? WARM_UP_RATE;
  const groups = [groupOf(accounts, rate, options)];
  const { handshakes, seconds } = options;
  const memory = watchMemory(stage.edgePid);
  const quiet: Turn[] = [];
  const unread: Turn[] = [];
  const flooded: Turn[] = [];
  let begun = 0;
  let proved = 0;
  for (let round = 0; round < options.rounds; round += 1) {
    quiet.push(await takeTurn(stage, "quic", groups, seconds));
    // The same program beside them, with no work for the edge: it shares the processors.
    for (const [turns, address] of [
      [unread, "unread"],
      [flooded, stage.quicAddress],
    ] as const) {
      const turn = takeTurn(stage, "quic", groups, seconds);
      await untilAccepted(stage);
      const flood = stage.startTool("handshakes", address, `${handshakes}`, `${seconds}`);
      turns.push(await turn);
      const [all = 0, asked = 0] = (await flood.line()).split(" ").map(Number);
      begun += turns === flooded ? all : 0;
      proved += asked;
    }
  }
  const [before = [], alone = [], meanwhile = []] = [quiet, unread, flooded].map((turns) =>
    turns.map(({ from_due_us: { p99 } }) => p99),
  );
  const timesOf = (p99s: readonly number[]) => (medianOf(p99s) / medianOf(before)).toFixed(2);
  const coreOf = (turns: readonly Turn[]) =>
    `${((medianOf(turns.map((turn) => turn.cpu_us)) * rate) / 10_000).toFixed(1)} %`;
  const missing = flooded.reduce((sum, turn) => sum + (turn.groups[0]?.missing ?? 0), 0);
  const count = flooded.reduce((sum, turn) => sum + turn.count, 0);
  console.log(
    `Handshakes: ${begun} begun at ${handshakes}/s in ${options.rounds} turns, ` +
      `${proved} of them proved their address when asked. A client at ${rate}/s: p99 ` +
      `${rangeOf(before, 0)} us without them, ${rangeOf(alone, 0)} us while the same program ` +
      `sends elsewhere (${timesOf(alone)} times), ${rangeOf(meanwhile, 0)} us ` +
      `meanwhile (${timesOf(meanwhile)} times), ${missing} of ${count} missing. The edge used ` +
      `${coreOf(quiet)} of a core without them and ${coreOf(flooded)} meanwhile. Its memory, ` +
      "at most in the first and in the last " +
      `${MEMORY_SAMPLES} s: ${beginAndEnd(memory.stop())}.`,
  );
}

/** Takes a process's resident memory each second, in megabytes, until `stop`. */
function watchMemory(pid: number): { stop(): readonly number[] } {
  const samplesMb: number[] = [];
  const timer = setInterval(() => samplesMb.push(rssMb(pid) ?? Number.NaN), 1_000);
  return {
    stop() {
      clearInterval(timer);
      return samplesMb;
    },
  };
}

function beginAndEnd(samplesMb: readonly number[]): string {
  const ends = [samplesMb.slice(0, MEMORY_SAMPLES), samplesMb.slice(-MEMORY_SAMPLES)];
  const most = ends.map((end) => megabytes(end.length === 0 ? null : Math.max(...end)));
  return most.join(" and ");
}

function megabytes(value: number | null): string {
  return value === null ? "?" : `${value.toFixed(1)} MB`;
}

/** Waits until one more transaction is accepted: all connections are open then. */
async function untilAccepted(stage: Stage): Promise<void> {
  const accepted = async (): Promise<number> => (await stage.outcomes())["accepted"] ?? 0;
  const before = await accepted();
  while ((await accepted()) === before) await sleep(50);
}

async function withstandGreed(
  stage: Stage,
  options: QuicLoadOptions,
  accounts: readonly BenchAccount[],
): Promise<void> {
  const [greedy, ...others] = accounts.slice(0, GREEDY_ACCOUNTS);
  if (greedy === undefined) return;
  stage.setAccounts(accounts, options.greedy);
  await sleep(SETTLE_MS);
  const own = Math.floor(options.greedy * WITHIN_LIMIT);
  const connections = GREEDY_CONNECTIONS;
  const nine = { rate: own * others.length, accounts: others, connections };
  const one = { rate: own, accounts: [greedy], connections };
  const above = GREEDY_TIMES * options.greedy;
  // The generator, which shares the processors, has the work of what is above the limit here too.
  const aboveElsewhere = { ...one, rate: above - own, isElsewhere: true };
  const fair: Turn[] = [];
  const alone: Turn[] = [];
  const unfair: Turn[] = [];
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [turns, groups] of [
      [fair, [nine, one]],
      [alone, [nine, one, aboveElsewhere]],
      [unfair, [nine, { ...one, rate: above }]],
    ] as const) {
      turns.push(await takeTurn(stage, "quic", groups, options.seconds));
      await sleep(SETTLE_MS);
    }
  }
  console.log(
    `Ten accounts with a limit of ${options.greedy}/s, ${options.rounds} turns each. ` +
      `All keep to their limit: ${nineAndOne(fair, options.seconds)}. ` +
      "The same, with what is above the limit given to a server that takes nothing: " +
      `${nineAndOne(alone, options.seconds)}. ` +
      `One sends ${GREEDY_TIMES} times its limit: ${nineAndOne(unfair, options.seconds)}.`,
  );
  stage.setAccounts(accounts, null);
  await sleep(SETTLE_MS);
}

/** What became of the transactions of the other nine, and of the one, over these turns. */
function nineAndOne(turns: readonly Turn[], seconds: number): string {
  const [nine, one] = [0, 1].map((at) => turns.flatMap(({ groups }) => groups[at] ?? []));
  const sum = (groups: readonly GroupResult[] = [], name: "missing" | "count"): number =>
    groups.reduce((total, group) => total + group[name], 0);
  const due = (quantile: "p50" | "p99"): string =>
    rangeOf(
      (nine ?? []).map((group) => group.from_due_us[quantile]),
      0,
    );
  // After the last send the edge has nothing to do.
  const cores = turns.map((turn) => (turn.cpu_us * turn.count) / (seconds * 1e6));
  return (
    `of the nine ${sum(nine, "missing")} of ${sum(nine, "count")} missing, p50 ${due("p50")} us, ` +
    `p99 ${due("p99")} us; of the one ${sum(one, "missing")} of ${sum(one, "count")} missing; ` +
    `${turns.reduce((total, { ends }) => total + ends.unsent, 0)} unsent, ` +
    `${turns.reduce((total, { refused }) => total + refused, 0)} refused; ` +
    `the edge used ${rangeOf(cores, 3)} cores`
  );
}

async function withstandFlood(
  stage: Stage,
  options: QuicLoadOptions,
  [honest, forger]: readonly BenchAccount[],
): Promise<void> {
  if (honest === undefined || forger === undefined) return;
  const rate = options.rates[0] ?? WARM_UP_RATE;
  const own = groupOf([honest], rate, options);
  const flood = { ...groupOf([forger], options.flood, options), isForged: true };
  for (const side of ["quic", options.endpoint] as const) {
    const quiet: GroupResult[] = [];
    const flooded: GroupResult[] = [];
    let passed = 0;
    for (let round = 0; round < options.rounds; round += 1) {
      const before = await takeTurn(stage, side, [own], options.seconds);
      quiet.push(...before.groups);
      const meanwhile = await takeTurn(stage, side, [own, flood], options.seconds);
      const [ofHonest, ofForger] = meanwhile.groups;
      if (ofHonest === undefined || ofForger === undefined) continue;
      flooded.push(ofHonest);
      passed += ofForger.count - ofForger.missing;
    }
    const change = (quantiles: (group: GroupResult) => Quantiles): string => {
      const [beforeUs, meanwhileUs] = [quiet, flooded].map((groups) =>
        Math.round(medianOf(groups.map((group) => quantiles(group).p99))),
      );
      return `${beforeUs} us before and ${meanwhileUs} us meanwhile`;
    };
    console.log(
      `Flood of ${options.flood} wrong signatures a second over ${side}: ${passed} reached a ` +
        `leader. A client at ${rate}/s: p99 from sent to leader ` +
        `${change((group) => group.one_way_us)}, from due to leader ` +
        `${change((group) => group.from_due_us)}; ` +
        `${flooded.reduce((sum, { missing }) => sum + missing, 0)} missing.`,
    );
  }
}

async function holdIdle(
  stage: Stage,
  options: QuicLoadOptions,
  [account]: readonly BenchAccount[],
): Promise<void> {
  if (account === undefined) return;
  const { edgePid, quicAddress } = stage;
  const seed = Buffer.from(account.identity.seed).toString("hex");
  const quietUs = await cpuOver(edgePid, IDLE_SECONDS);
  const beforeMb = rssMb(edgePid) ?? Number.NaN;
  const hold = stage.startTool("hold", quicAddress, `${options.idle}`, seed);
  const opened = await hold.line();
  await sleep(SETTLE_MS);
  const heldUs = await cpuOver(edgePid, IDLE_SECONDS);
  const afterMb = rssMb(edgePid) ?? Number.NaN;
  hold.say("count");
  const open = await hold.line();
  await hold.stop();
  const share = (us: number) => `${(us / IDLE_SECONDS / 1e4).toFixed(2)} %`;
  console.log(
    `Idle: ${opened} connections opened, ${open} open after ${IDLE_SECONDS} s. Memory of the ` +
      `edge ${megabytes(beforeMb)} before, ${megabytes(afterMb)} with them ` +
      `(${megabytes(afterMb - beforeMb)} more). CPU of a core ${share(quietUs)} before, ` +
      `${share(heldUs)} with them.`,
  );
}

async function cpuOver(pid: number, seconds: number): Promise<number> {
  const before = cpuUs(pid) ?? Number.NaN;
  await sleep(seconds * 1000);
  return (cpuUs(pid) ?? Number.NaN) - before;
}

async function revoke(
  stage: Stage,
  options: QuicLoadOptions,
  accounts: readonly BenchAccount[],
): Promise<void> {
  const [revoked, ...others] = accounts;
  if (revoked === undefined) return;
  const group = { rate: REVOKE_RATE, accounts: [revoked], connections: options.revoke };
  const turn = takeTurn(stage, "quic", [group], REVOKE_SECONDS);
  await untilAccepted(stage);
  await sleep((REVOKE_SECONDS * 1000) / 2);
  const atNs = Number(process.hrtime.bigint());
  stage.setAccounts(others, null);
  const { ends, groups } = await turn;
  const since = (ns: number | undefined) => `${Math.round(((ns ?? Number.NaN) - atNs) / 1e6)} ms`;
  console.log(
    `Revocation: of ${options.revoke} connections ${ends.closed} were closed, the first ` +
      `${since(ends.first_closed_ns)} after the revocation, the last ` +
      `${since(ends.last_closed_ns)}; the last transaction reached a leader ` +
      `${since(groups[0]?.last_arrival_ns)} after it.`,
  );
  stage.setAccounts(accounts, null);
}
