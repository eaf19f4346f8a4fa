/**
 * What `doctor` checks about leaders: a QUIC handshake with each of the next ones, with the edge's
 * own engine, identity and source addresses. One connection to each; nothing is sent.
 */

import type { Config } from "../../config/config.ts";
import { type Clock, NS_PER_MS, sleep } from "../../core/clock.ts";
import { messageOf, SetupError } from "../../core/errors.ts";
import { readIdentity } from "../../edge/identity.ts";
import { loadOptionalModules } from "../../edge/optional-modules.ts";
import { transportOf } from "../../engine/transport.ts";
import { chooseEngine } from "../../native/choose.ts";
import type { CloseCause, Transport } from "../../send/transport.ts";
import { DOCTOR_LEADERS_MAX, DOCTOR_RESPONSE_MS_MAX } from "../limits.ts";
import type { ClusterSide } from "./cluster.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warning, error, unknown } = findingsOf("leaders");

interface NextLeader {
  readonly identity: string;
  /** Null: it publishes none. */
  readonly address: string | null;
}

export async function leaderFindings(
  { clock, rpc }: ClusterSide,
  config: Config,
): Promise<readonly Finding[]> {
  let leaders: readonly NextLeader[];
  try {
    leaders = await nextLeaders(rpc);
  } catch (cause) {
    return [unknown("handshake", `the next leaders are not known: ${messageOf(cause)}`)];
  }
  let transport: Transport;
  try {
    transport = await transportFor(config, clock);
  } catch (cause) {
    if (!(cause instanceof SetupError)) throw cause;
    return [unknown("handshake", `not tried: ${cause.message}`)];
  }
  try {
    await transport.start();
    const findings = await Promise.all(leaders.map((each) => handshake(each, transport, clock)));
    const isAny = findings.some(({ level }) => level === "ok");
    return isAny || findings.length === 0 ? findings : [none(findings.length), ...findings];
  } catch (cause) {
    return [unknown("handshake", `no socket to send from: ${messageOf(cause)}`)];
  } finally {
    await transport.stop();
  }
}

function none(count: number): Finding {
  return error(
    "handshake",
    `none of the next ${count} leaders could be connected to`,
    "no transaction can be sent",
    "allow outgoing UDP to any port and its answers, such as `ufw allow out proto udp`",
  );
}

/** The next leaders, the current one first, each once. */
async function nextLeaders(rpc: ClusterSide["rpc"]): Promise<readonly NextLeader[]> {
  const { slot, current } = await rpc.epochs();
  const [schedule, contacts] = await Promise.all([rpc.leaders(slot), rpc.contacts()]);
  if (schedule === null) throw new Error("the node does not know the leader schedule");
  const index = slot - current.firstSlot;
  const starts = [...schedule].flatMap(([identity, slots]) => {
    const next = slots.reduce((least, each) => {
      return each >= index && each < least ? each : least;
    }, Number.POSITIVE_INFINITY);
    return Number.isFinite(next) ? [{ identity, next }] : [];
  });
  const addresses = new Map(contacts.map(({ identity, address }) => [identity, address]));
  return starts
    .sort((a, b) => a.next - b.next)
    .slice(0, DOCTOR_LEADERS_MAX)
    .map(({ identity }) => ({ identity, address: addresses.get(identity) ?? null }));
}

/** @throws SetupError for an identity or an engine with which no edge would start */
async function transportFor(config: Config, clock: Clock): Promise<Transport> {
  const identity = readIdentity(config.identity.keypair);
  const log = { info() {}, warn() {}, error() {} };
  const engine = chooseEngine(config.send.engine, log);
  const modules = await loadOptionalModules(config, engine);
  // Any free port: those of the configuration belong to the edge, which may run.
  const bind = config.send.bind.map(({ host }) => ({ host, port: 0 }));
  const own = { ...config, send: { ...config.send, bind } };
  return transportOf(own, identity, { clock, log, engine, modules, shared: null });
}

async function handshake(
  { identity, address }: NextLeader,
  transport: Transport,
  clock: Clock,
): Promise<Finding> {
  const cost = "no transaction reaches this leader from here; the next leaders get them instead";
  if (address === null) {
    return warning("handshake", `${identity} publishes no address for QUIC`, cost, null);
  }
  const startNs = clock.nowNs();
  const passedMs = (): number => (clock.nowNs() - startNs) / NS_PER_MS;
  let ended: CloseCause | null = null;
  const connection = transport.connect(address, {
    progress() {},
    result() {},
    sentElsewhere() {},
    ended(cause) {
      ended = cause;
    },
  });
  while (
    connection?.established === false &&
    ended === null &&
    passedMs() < DOCTOR_RESPONSE_MS_MAX
  ) {
    await sleep(clock, POLL_MS);
    transport.flushEvents?.();
  }
  const name = `${identity} at ${address}`;
  if (connection?.established === true && ended === null) {
    const ms = passedMs();
    connection.close();
    return ok("handshake", `${name}: ${ms.toFixed(0)} ms`);
  }
  connection?.close();
  const why = ended === null ? `no answer in ${passedMs().toFixed(0)} ms` : causeOf(ended);
  const fix = "if it is the same for all leaders: outgoing UDP in the firewall";
  return warning("handshake", `${name}: ${why}`, cost, fix);
}

function causeOf({ kind, code }: CloseCause): string {
  if (kind === "silence") return "no answer";
  return kind === "local"
    ? "the handshake failed here"
    : `closed by the leader, ${kind} code ${code}`;
}

const POLL_MS = 2;
