/**
 * What `doctor` checks about the cluster, with the edge's own RPC client: whether the node is
 * reachable, in step, reports slots and statuses, which versions run, and the stake behind the
 * edge's identity.
 */

import { ClusterCounters } from "../../cluster/counters.ts";
import type { Contact } from "../../cluster/ports.ts";
import { createRpc, type Rpc, type Votes } from "../../cluster/rpc/rpc.ts";
import type { Config } from "../../config/config.ts";
import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import { decodeBase58, encodeBase58 } from "../../core/encoding.ts";
import { messageOf, SetupError } from "../../core/errors.ts";
import { readIdentity } from "../../edge/identity.ts";
import { DOCTOR_RESPONSE_MS_MAX } from "../limits.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warning, error, unknown } = findingsOf("cluster");

export interface ClusterSide {
  readonly clock: Clock;
  readonly rpc: Rpc;
}

export function openCluster(clock: Clock, { rpcUrl, wsUrl }: Config["cluster"]): ClusterSide {
  const counters = new ClusterCounters();
  const options = { rpcUrl, wsUrl, timeoutMs: DOCTOR_RESPONSE_MS_MAX };
  return { clock, rpc: createRpc({ clock, counters }, options) };
}

/** Base58; null if the edge makes a fresh identity at each start; or why it cannot be read. */
type OwnIdentity = string | null | SetupError;

export function ownIdentity(keypair: string | null): OwnIdentity {
  if (keypair === null) return null;
  try {
    return encodeBase58(readIdentity(keypair).publicKey);
  } catch (error) {
    if (error instanceof SetupError) return error;
    throw error;
  }
}

export async function clusterFindings(
  side: ClusterSide,
  identity: OwnIdentity,
  queuePerLeader: number,
): Promise<readonly Finding[]> {
  const reachable = await reach(side);
  if (reachable.level === "error") return [reachable];
  const checks = [inStep(side), slots(side), versions(side), statuses(side)];
  const ofIdentity = identityChecks(side, identity, queuePerLeader);
  return [reachable, ...(await Promise.all([...checks, ...ofIdentity]))];
}

function identityChecks(
  { rpc }: ClusterSide,
  identity: OwnIdentity,
  queuePerLeader: number,
): readonly (Finding | Promise<Finding>)[] {
  if (identity instanceof SetupError) {
    const { message } = identity;
    return [unknown("stake", message), unknown("queue", "the identity's stake is not known")];
  }
  const own = identity === null ? null : { identity, votes: rpc.votes() };
  return [stake(own), queue(own, queuePerLeader)];
}

/** The edge's identity, and all stakes. */
type Own = { readonly identity: string; readonly votes: Promise<Votes> } | null;

async function reach({ clock, rpc }: ClusterSide): Promise<Finding> {
  const startNs = clock.nowNs();
  try {
    await rpc.slot();
    // The first request also opened the connection.
    const connectedNs = clock.nowNs();
    const slot = await rpc.slot();
    const ms = (clock.nowNs() - connectedNs) / NS_PER_MS;
    const found = `cluster.rpc_url answers slot ${slot} in ${ms.toFixed(1)} ms`;
    if (ms <= ANSWER_MS_MAX) return ok("reachable", found);
    return warning(
      "reachable",
      found,
      "landings, heights and leaders become known that much later",
      "a node in the same region as the edge: cluster.rpc_url",
    );
  } catch (cause) {
    const ms = Math.round((clock.nowNs() - startNs) / NS_PER_MS);
    return error(
      "reachable",
      `cluster.rpc_url did not answer in ${ms} ms: ${messageOf(cause)}`,
      "the edge knows no leaders and does not become ready",
      "cluster.rpc_url, the node, or the firewall between",
    );
  }
}

/** A node of the same region answers within this time. */
const ANSWER_MS_MAX = 50;

/** A check whose request may fail by itself. */
async function asked(check: string, act: () => Promise<Finding>): Promise<Finding> {
  try {
    return await act();
  } catch (cause) {
    return unknown(check, `the node did not say: ${messageOf(cause)}`);
  }
}

function inStep({ rpc }: ClusterSide): Promise<Finding> {
  const fix = "wait until the node has caught up, or another node: cluster.rpc_url";
  const cost = "the edge sends to leaders whose slots are over, and transactions land late or not";
  return asked("in_step", async () => {
    const words = await rpc.health();
    if (words !== null) return error("in_step", `the node is not healthy: ${words}`, cost, fix);
    const [processed, confirmed] = await Promise.all([rpc.slot(), rpc.confirmedSlot()]);
    const behind = processed - confirmed;
    const found = `processed slot ${processed}, confirmed slot ${confirmed}`;
    if (behind <= CONFIRMATION_SLOTS_MAX) return ok("in_step", found);
    return warning("in_step", `${found}: the confirmation is ${behind} slots behind`, cost, fix);
  });
}

/** A healthy cluster confirms within a few slots; more than two windows are a standstill. */
const CONFIRMATION_SLOTS_MAX = 16;

/** Waits for one slot of the WebSocket. */
function slots({ clock, rpc }: ClusterSide): Promise<Finding> {
  return new Promise((resolve) => {
    const end = (finding: Finding): void => {
      timer.cancel();
      subscriber.end();
      resolve(finding);
    };
    const silent = (why: string): Finding =>
      error(
        "slots",
        `cluster.ws_url ${why}`,
        "slots are polled instead, and each leader is known up to 400 ms late",
        "cluster.ws_url, or the node's WebSocket port (8900) in the firewall",
      );
    const timer = clock.after(DOCTOR_RESPONSE_MS_MAX, () => end(silent("reported no slot")));
    const subscriber = rpc.openSlotSubscriber({
      opened() {
        void subscriber.subscribe("slotsUpdates");
        void subscriber.subscribe("slot");
      },
      event: (subscription, _, slot) => end(ok("slots", `slot ${slot} came as ${subscription}`)),
      closed: () => end(silent("could not be connected to")),
    });
  });
}

function versions({ rpc }: ClusterSide): Promise<Finding> {
  return asked("versions", async () => {
    const [own, contacts] = await Promise.all([rpc.version(), rpc.contacts()]);
    const counts = versionCounts(contacts);
    const list = counts.slice(0, VERSIONS_SHOWN).map(({ name, count }) => `${name} (${count})`);
    const found = `the node runs ${own}, the cluster ${list.join(", ")}`;
    const [usual] = counts;
    if (usual === undefined || compare(lineOf(own), usual.name) >= 0) return ok("versions", found);
    return warning(
      "versions",
      `${found}: the node is older than most`,
      "methods that newer nodes have are missing, and the node stops at the next change of rules",
      "update the node",
    );
  });
}

const VERSIONS_SHOWN = 4;

/** Counts of `major.minor`, most frequent first. */
function versionCounts(contacts: readonly Contact[]) {
  const counts = new Map<string, number>();
  for (const { version } of contacts) {
    if (version !== null) counts.set(lineOf(version), (counts.get(lineOf(version)) ?? 0) + 1);
  }
  const list = [...counts].map(([name, count]) => ({ name, count }));
  return list.sort((a, b) => b.count - a.count);
}

const lineOf = (version: string): string => version.split(".").slice(0, 2).join(".");

function compare(left: string, right: string): number {
  const [a = [], b = []] = [left, right].map((text) => text.split(".").map(Number));
  return (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0);
}

/** Asks for statuses of transactions that landed: those of one of the node's own blocks. */
function statuses({ rpc }: ClusterSide): Promise<Finding> {
  return asked("statuses", async () => {
    const newest = (await rpc.confirmedSlot()) - 1;
    for (let slot = newest; slot > newest - BLOCKS_READ_MAX && slot > 0; slot -= 1) {
      const signatures = ((await rpc.blockSignatures(slot)) ?? []).slice(0, SIGNATURES_ASKED);
      const bytes = signatures
        .map((text) => decodeBase58(text, 64))
        .filter((each) => each !== null);
      if (bytes.length === 0) continue;
      const response = await rpc.statuses(Buffer.concat(bytes));
      if (response.statuses.some((status) => status !== null)) {
        return ok("statuses", "the node keeps the statuses of transactions");
      }
      return error(
        "statuses",
        `the node has no status of transactions in its own block ${slot}`,
        "the edge cannot learn what landed: receipts stay `acknowledged`, resends go on to the end",
        "a node with --full-rpc-api, or cluster.grpc_url",
      );
    }
    const why = `none of the node's last ${BLOCKS_READ_MAX} blocks holds a transaction to ask for`;
    return unknown("statuses", why, "send one, then doctor again");
  });
}

const BLOCKS_READ_MAX = 32;
const SIGNATURES_ASKED = 4;
const LAMPORTS_PER_SOL = 1e9;

function stake(own: Own): Promise<Finding> {
  const cost = "leaders grant an unstaked identity few streams, and none while they are busy";
  const fix =
    "identity.keypair of a staked validator, or of one that it lists in --staked-nodes-overrides";
  return asked("stake", async () => {
    if (own === null) {
      return warning("stake", "without identity.keypair each start has a new identity", cost, fix);
    }
    const { identity } = own;
    const { stakes } = await own.votes;
    const lamports = stakes.get(identity) ?? 0;
    if (lamports === 0) {
      return warning("stake", `${identity} has no stake of its own`, cost, fix);
    }
    const total = [...stakes.values()].reduce((sum, each) => sum + each, 0);
    const share = ((100 * lamports) / total).toPrecision(3);
    const sol = Math.round(lamports / LAMPORTS_PER_SOL);
    return ok("stake", `${identity} has ${sol} SOL, ${share} % of the cluster's stake`);
  });
}

/**
 * Half a second of 2,000 transactions a second. The default is what a leader reads from a sender
 * without stake before `send.delivery_ttl` is over; a longer queue would only expire there.
 */
const STAKED_QUEUE_MIN = 1_024;

function queue(own: Own, queuePerLeader: number): Promise<Finding> {
  return asked("queue", async () => {
    const hasStake = own !== null && ((await own.votes).stakes.get(own.identity) ?? 0) > 0;
    const whose = `the identity has ${hasStake ? "" : "no "}stake`;
    const found = `send.queue_per_leader is ${queuePerLeader}, and ${whose}`;
    if (!hasStake || queuePerLeader >= STAKED_QUEUE_MIN) return ok("queue", found);
    const pauseMs = Math.round(queuePerLeader / 2);
    return warning(
      "queue",
      found,
      `at 2,000 transactions a second, leaders that read nothing for ${pauseMs} ms fill it, and ` +
        "further transactions are refused as overloaded",
      `send.queue_per_leader = ${STAKED_QUEUE_MIN}, or half a second of the edge's load`,
    );
  });
}
