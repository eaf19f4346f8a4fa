/**
 * What the sender has to do with fronts: it tells them where they may send (`look`), and enters
 * what they sent into its books (`adopt`), as if it had sent it itself.
 *
 * Fronts send to each leader of the plan that has a live connection and takes copies as they
 * come. One that keeps more of them waiting than it takes in a moment is left out: who pays best
 * is to go first there, which one thread has to see to, so its copies are placed when a packet is
 * adopted, and fronts have that done at once. Leaders without a connection are left out, too, and
 * for them nobody hurries.
 *
 * The surprise: a front's word comes up to 210 ms late. Meanwhile plans and connections change, so
 * the routes of the last versions are kept, and each copy is entered where it was sent, though that
 * connection may be over. So that leaders which come and go do not use the versions up, one that
 * kept copies waiting stays out for a while. Where all do, the routes are only closed, which makes
 * no version, and opened as soon as none does.
 */

import { type Clock, NS_PER_MS } from "../../core/clock.ts";
import type { Packet, Target } from "../../core/flow.ts";
import { ROUTES_SHARED_MAX } from "../../core/limits.ts";
import type { Offer } from "../copies.ts";
import type { Link } from "../leader-connection.ts";
import { ROUTE_OUT_MS_MIN, ROUTE_VERSIONS_KEPT } from "../limits.ts";
import type { Peer } from "../peer.ts";
import type { Route } from "../peers.ts";
import type { SendCounters } from "../send-counters.ts";
import type { SharedConnection } from "../transport.ts";
import type { FrontSend } from "./send-record.ts";
import type { SharedRoutes } from "./shared-route-table.ts";

/** A route of one version; `link` is null for a leader that was left out. */
interface VersionRoute {
  readonly peer: Peer;
  readonly target: Target;
  readonly link: Link | null;
}

/** Where a leader stands: what is higher is better. */
const NOT_LIVE = 0;
/** Copies wait there, they did a moment ago, or they go out as they come. */
const WAITS = 1;
const WAITED = 2;
const CLEAR = 3;

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
  /** Leaders that kept copies waiting, and until when they are left out. */
  readonly #outUntilNs = new WeakMap<Peer, number>();
  /** Where each route stands. */
  readonly #standings: number[] = [];
  // As published last.
  #engine = 0;
  #routes: readonly Route[] = [];
  /** Of each of them the live connection, and whether fronts are to send over it. */
  readonly #links: (Link | null)[] = [];
  readonly #isGiven: boolean[] = [];
  #given: readonly VersionRoute[] = [];
  #bytesMax = 0;
  #isOpen = false;

  constructor(deps: AdoptionDeps, copyTtlMs: number) {
    this.#deps = deps;
    this.#copyTtlMs = copyTtlMs;
  }

  /** Leaders that are connected and that fronts leave to this thread. */
  get leftOut(): number {
    const live = this.#links.reduce((count, link) => count + (link === null ? 0 : 1), 0);
    return live - (this.#isOpen ? this.#given.length : 0);
  }

  /** Tells fronts where they may send, as far as that has changed. */
  look(running: boolean): void {
    const { clock, shared } = this.#deps;
    const least = this.#survey(clock.nowNs());
    if (this.#isStale(least)) this.#publish(least);
    this.#isOpen = running && this.#given.length > 0 && this.#mayGo();
    shared.open(this.#isOpen);
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

  /** Looks where each leader stands; answers where the best ones do, of those that may be given. */
  #survey(nowNs: number): number {
    const { routes } = this.#deps.peers;
    let least = WAITED;
    for (let index = 0; index < routes.length; index += 1) {
      const peer = routes[index]?.peer;
      const standing = peer === undefined ? NOT_LIVE : this.#standingOf(peer, nowNs);
      this.#standings[index] = standing;
      if (standing === CLEAR) least = CLEAR;
    }
    return least;
  }

  #standingOf(peer: Peer, nowNs: number): number {
    const link = peer.liveLink;
    if (link === null) return NOT_LIVE;
    // Asked in any case: how many may wait there depends on it.
    const isCrowded = link.connection?.shared?.crowded(nowNs) ?? true;
    if (peer.copies.isClear && !isCrowded) {
      return nowNs >= (this.#outUntilNs.get(peer) ?? 0) ? CLEAR : WAITED;
    }
    this.#outUntilNs.set(peer, nowNs + ROUTE_OUT_MS_MIN * NS_PER_MS);
    return WAITS;
  }

  #isStale(least: number): boolean {
    const { peers, shared } = this.#deps;
    const { routes } = peers;
    if (routes !== this.#routes || shared.engine !== this.#engine) return true;
    // While copies wait everywhere, or did, who is given stays so.
    const isKept = least === WAITED && this.#given.length > 0;
    for (let index = 0; index < routes.length; index += 1) {
      if (routes[index]?.peer.liveLink !== this.#links[index]) return true;
      const isGiven = (this.#standings[index] ?? NOT_LIVE) >= least;
      if (!isKept && isGiven !== this.#isGiven[index]) return true;
    }
    return bytesMaxOf(this.#given) !== this.#bytesMax;
  }

  /** Whether copies wait nowhere where fronts send to. */
  #mayGo(): boolean {
    for (let index = 0; index < this.#routes.length; index += 1) {
      if (this.#isGiven[index] === true && this.#standings[index] === WAITS) return false;
    }
    return true;
  }

  #publish(least: number): void {
    const { peers, shared } = this.#deps;
    this.#engine = shared.engine;
    this.#routes = peers.routes;
    this.#links.length = 0;
    this.#isGiven.length = 0;
    const given: VersionRoute[] = [];
    const rest: VersionRoute[] = [];
    const connections: SharedConnection[] = [];
    let leftOut = 0;
    for (const [index, { peer, target }] of this.#routes.entries()) {
      const link = peer.liveLink;
      const isGiven = (this.#standings[index] ?? NOT_LIVE) >= least;
      this.#links.push(link);
      this.#isGiven.push(isGiven);
      const connection = isGiven ? (link?.connection?.shared ?? null) : null;
      if (connection !== null && shared.engine !== 0 && given.length < ROUTES_SHARED_MAX) {
        given.push({ peer, target, link });
        connections.push(connection);
      } else {
        rest.push({ peer, target, link: null });
        if (link !== null) leftOut += 1;
      }
    }
    this.#given = given;
    this.#bytesMax = bytesMaxOf(given);
    const version = shared.publish(connections, this.#copyTtlMs, this.#bytesMax, leftOut);
    this.#versions[version % ROUTE_VERSIONS_KEPT] = { version, routes: [...given, ...rest] };
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
