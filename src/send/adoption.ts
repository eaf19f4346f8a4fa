/**
 * What the sender has to do with fronts: it tells them where they may send (`look`), and enters
 * what they sent into its books (`adopt`), as if it had sent it itself.
 *
 * Fronts may send while every leader of the plan that has a live connection takes copies as they
 * come: where one keeps them waiting, who pays best is to go first, which one thread has to see to.
 * Leaders without a connection hold up nothing: their copies are placed when a packet is adopted.
 *
 * The surprise: a front's word comes up to 100 ms late. Meanwhile plans and connections change, so
 * the routes of the last versions are kept, and each copy is entered where it was sent, though that
 * connection may be over.
 */

import type { Clock } from "../core/clock.ts";
import type { Packet, Target } from "../core/flow.ts";
import { ROUTE_VERSIONS_KEPT, ROUTES_SHARED_MAX } from "../core/front-limits.ts";
import type { Offer } from "./copies.ts";
import type { FrontSend } from "./front-sender.ts";
import type { Link } from "./link.ts";
import type { Peer } from "./peer.ts";
import type { Route } from "./peers.ts";
import type { SendCounters } from "./send-counters.ts";
import type { SharedRoutes } from "./shared-routes.ts";
import type { SharedConnection } from "./transport.ts";

/** A route of one version; `link` is null for a leader that no front sends to. */
interface VersionRoute {
  readonly peer: Peer;
  readonly target: Target;
  readonly link: Link | null;
}

interface Version {
  readonly version: number;
  /** Those that fronts send to come first. */
  readonly routes: readonly VersionRoute[];
}

export interface AdoptionDeps {
  readonly clock: Clock;
  readonly shared: SharedRoutes;
  readonly counters: SendCounters;
  readonly peers: { readonly routes: readonly Route[] };
  /** For each route that did not take the packet: keeps a copy, or tells that there is none. */
  readonly placeRest: (
    packet: Packet,
    routes: readonly Route[],
    offers: readonly Offer[],
    nowNs: number,
  ) => void;
}

export class Adoption {
  readonly #deps: AdoptionDeps;
  readonly #copyTtlMs: number;
  /** By version, in turn. */
  readonly #versions: (Version | undefined)[] = new Array(ROUTE_VERSIONS_KEPT);
  readonly #offers: Offer[] = [];
  // As published last.
  #engine = 0;
  #routes: readonly Route[] = [];
  readonly #links: (Link | null)[] = [];
  #bytesMax = 0;
  /** Those of them that fronts send to; none where they may not. */
  #live: readonly VersionRoute[] = [];

  constructor(deps: AdoptionDeps, copyTtlMs: number) {
    this.#deps = deps;
    this.#copyTtlMs = copyTtlMs;
  }

  /** Tells fronts where they may send, as far as that has changed. */
  look(running: boolean): void {
    if (this.#isStale()) this.#publish();
    this.#deps.shared.open(running && this.#live.length > 0 && this.#isClear());
  }

  /** Enters a packet that a front sent at `sentNs`. */
  adopt(packet: Packet, sent: FrontSend, sentNs: number, running: boolean): void {
    const { clock, counters, placeRest } = this.#deps;
    const kept = this.#versions[sent.version % ROUTE_VERSIONS_KEPT];
    counters.packetsTaken += 1;
    if (kept?.version !== sent.version) {
      counters.packetsAdoptedLate += 1;
      return;
    }
    const { routes } = kept;
    const offers = this.#offers;
    const nowNs = clock.nowNs();
    counters.copies += routes.length;
    let missing = 0;
    for (let index = 0; index < routes.length; index += 1) {
      const route = routes[index];
      if (route === undefined) continue;
      offers[index] = "taken";
      const isOnWire = index < sent.count && ((sent.mask >>> index) & 1) === 1;
      const waits = index < sent.count && ((sent.mask >>> (16 + index)) & 1) === 1;
      const stream = sent.streams[index] ?? 0;
      if ((isOnWire || waits) && route.link !== null) {
        route.peer.copies.adopt(route.link, packet, route.target, stream, sentNs, !isOnWire);
        continue;
      }
      if (running) offers[index] = route.peer.offer(packet, route.target, nowNs);
      else offers[index] = "not_connected";
      missing += 1;
    }
    if (missing > 0) placeRest(packet, routes, offers, nowNs);
    // A front may have closed the routes because copies wait.
    if (missing > 0 || sent.mask >>> 16 !== 0) this.look(running);
  }

  #isStale(): boolean {
    const { peers, shared } = this.#deps;
    const { routes } = peers;
    if (routes !== this.#routes || shared.engine !== this.#engine) return true;
    for (let index = 0; index < routes.length; index += 1) {
      if (routes[index]?.peer.liveLink !== this.#links[index]) return true;
    }
    return bytesMaxOf(this.#live) !== this.#bytesMax;
  }

  #isClear(): boolean {
    for (const { peer, link } of this.#live) {
      if (!peer.copies.isClear || link?.connection?.shared?.crowded !== false) return false;
    }
    return true;
  }

  #publish(): void {
    const { peers, shared } = this.#deps;
    this.#engine = shared.engine;
    this.#routes = peers.routes;
    const routes = this.#routes.map(({ peer, target }) => ({ peer, target, link: peer.liveLink }));
    this.#links.length = 0;
    this.#links.push(...routes.map(({ link }) => link));
    const live = routes.filter(({ link }) => link !== null);
    const connections = live.flatMap(({ link }) => link?.connection?.shared ?? []);
    // All or none: who is connected to and cannot be sent to by fronts would be left out.
    const fits = connections.length === live.length && live.length <= ROUTES_SHARED_MAX;
    this.#live = fits && shared.engine !== 0 ? live : [];
    this.#bytesMax = bytesMaxOf(this.#live);
    const given: readonly SharedConnection[] = this.#live.length > 0 ? connections : [];
    const version = shared.publish(given, this.#copyTtlMs, this.#bytesMax);
    const ordered = [...live, ...routes.filter(({ link }) => link === null)];
    this.#versions[version % ROUTE_VERSIONS_KEPT] = { version, routes: ordered };
  }
}

/** The largest transaction that all of them take; 0 where there is none. */
function bytesMaxOf(routes: readonly VersionRoute[]): number {
  let bytesMax = routes.length === 0 ? 0 : Number.POSITIVE_INFINITY;
  for (const { peer, link } of routes) {
    const streamBytesMax = link?.connection?.shared?.streamBytesMax ?? 0;
    bytesMax = Math.min(bytesMax, peer.copies.bytesMax, streamBytesMax);
  }
  return bytesMax;
}
