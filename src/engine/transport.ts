/** An engine's connections to leaders, as the configuration asks for them. */

import { availableParallelism } from "node:os";
import type { Config } from "../config/config.ts";
import { formatListen, type ListenAddress } from "../config/value-types.ts";
import type { Clock } from "../core/clock.ts";
import { SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { EngineChoice } from "../native/choose.ts";
import type { Identity } from "../send/identity.ts";
import { createNativeTransport, type NativeShared } from "../send/native/transport-native.ts";
import type { createQuicTransport } from "../send/portable/transport-quic.ts";
import { QUIC_TRANSPORT_DEFAULTS } from "../send/portable/transport-quic-options.ts";
import { SENDER_DEFAULTS } from "../send/sender.ts";
import type { Transport } from "../send/transport.ts";
import { BUSY_POLL_PROCESSORS_MIN, BUSY_POLL_US } from "./limits.ts";

export interface TransportDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: EngineChoice;
  /** Null where the native engine is chosen. */
  readonly modules: { readonly createQuicTransport: typeof createQuicTransport | null };
  /** What the native engine and the sender share; null: no other thread sends. */
  readonly shared: NativeShared | null;
}

/** The engine's connections to leaders. @throws SetupError as `busyPollOf`, `portableBindOf` */
export function transportOf(
  { host, send }: Pick<Config, "host" | "send">,
  identity: Identity,
  deps: TransportDeps,
): Transport {
  const { clock, log, engine, modules, shared } = deps;
  const { idleTimeoutMs } = QUIC_TRANSPORT_DEFAULTS;
  const busyPollUs = busyPollOf(host, engine, availableParallelism());
  if (engine.name === "portable") {
    const options = { ...QUIC_TRANSPORT_DEFAULTS, ...portableBindOf(send.bind) };
    if (modules.createQuicTransport === null) throw new Error("its QUIC library was not loaded");
    return modules.createQuicTransport({ clock, identity }, options);
  }
  const { keepAliveMs, handshakeMs } = SENDER_DEFAULTS;
  return createNativeTransport(
    { native: engine.native, identity, log, shared },
    {
      binds: send.bind.map(formatListen),
      busyPollUs,
      idleTimeoutMs,
      keepAliveMs,
      admissionTimeoutMs: handshakeMs + idleTimeoutMs,
      queuePerLeader: send.queuePerLeader,
      deliveryTtlMs: send.deliveryTtlMs,
    },
  );
}

/**
 * The portable engine has one socket per address family; an address of one leaves the other at its
 * default. @throws SetupError for two of a family
 */
export function portableBindOf(binds: readonly ListenAddress[]) {
  const [first, second, ...more] = binds;
  if (first === undefined) return {};
  const isIpv6 = ({ host }: ListenAddress): boolean => host.includes(":");
  if (more.length > 0 || (second !== undefined && isIpv6(first) === isIpv6(second))) {
    throw new SetupError(
      `send.bind: the portable engine sends from one address of each family, not from ` +
        `${binds.map(formatListen).join(", ")}; the native one takes them all`,
    );
  }
  const optionsOf = (bind: ListenAddress) =>
    isIpv6(bind)
      ? { bindIpv6: bind.host, portIpv6: bind.port }
      : { bindIpv4: bind.host, portIpv4: bind.port };
  return { ...optionsOf(first), ...(second === undefined ? {} : optionsOf(second)) };
}

/**
 * How long a thread polls for work before it sleeps; 0: not at all.
 *
 * @throws SetupError where polling would starve other threads
 */
export function busyPollOf(
  { busyPoll }: Pick<Config["host"], "busyPoll">,
  engine: EngineChoice,
  processors: number,
): number {
  if (!busyPoll) return 0;
  if (engine.native === null) {
    throw new SetupError("host.busy_poll: the portable engine cannot poll, the native one can");
  }
  if (processors >= BUSY_POLL_PROCESSORS_MIN) return BUSY_POLL_US;
  throw new SetupError(
    `host.busy_poll: polling needs ${BUSY_POLL_PROCESSORS_MIN} processors or more, this machine ` +
      `has ${processors}`,
  );
}
