/**
 * All leaders that matter now or did a moment ago. Follows the plan: makes connections to what is
 * wanted, nearest turn first, and closes what left it after a grace, because plans move on while
 * copies still fly. An address that left is remembered as long as its pacing holds, so that a
 * leader who comes back is not tried more often than one who stays.
 *
 * Where a leader of the plan has no live connection, the next one that has takes its copies as
 * well, so that no fewer are reached than can be. The routes are made anew when a connection comes
 * or goes, not for a transaction.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Plan, Target } from "../core/flow.ts";
import { SEND_SLOTS_AHEAD_MAX } from "../core/limits.ts";
import { PEERS_REMEMBERED_MAX } from "./limits.ts";
import { Peer, type PeerDeps, type PeerOptions } from "./peer.ts";
import { LOOK_LATE_MS } from "./ticker.ts";

export interface PeersOptions extends PeerOptions {
  readonly connectionsMax: number;
  /** How long a connection stays open after the plan dropped it. */
  readonly leaveGraceMs: number;
  readonly slotTimeMs: () => number;
  /** A leader's share of all stake: how soon its turn comes again. */
  readonly stakeShareOf: (identity: string) => number;
}

/** A leader that is sent to, and its peer. */
export interface Route {
  readonly peer: Peer;
  readonly target: Target;
}

export class Peers {
  /** In the order of `plan.send`, and then those in place of who is not live. */
  routes: readonly Route[] = [];
  readonly #deps: PeerDeps;
  readonly #options: PeersOptions;
  readonly #byAddress = new Map<string, Peer>();
  /** What the plan wants, nearest turn first, as far as the bound goes. */
  #wanted: readonly Peer[] = [];
  /** Those that the plan sends to, and those near enough to be sent to in their place. */
  #sent: readonly Route[] = [];
  #spare: readonly Route[] = [];

  constructor(deps: Omit<PeerDeps, "onChange">, options: PeersOptions) {
    this.#deps = { ...deps, onChange: () => this.#reroute() };
    this.#options = options;
  }

  all(): readonly Peer[] {
    return [...this.#byAddress.values()];
  }

  /** Replaces what is wanted; `connect` makes the connections. */
  use(plan: Plan, nowNs: number): void {
    const wanted = new Map<string, Peer>();
    const slotNs = this.#options.slotTimeMs() * NS_PER_MS;
    for (const target of [...plan.send, ...plan.warm]) {
      if (wanted.has(target.address)) continue;
      const peer = this.#peerOf(target, wanted.size);
      if (peer === null) continue;
      peer.turnNs = nowNs + (target.slot - plan.slot) * slotNs;
      wanted.set(target.address, peer);
    }
    for (const peer of this.#byAddress.values()) {
      if (wanted.has(peer.address)) peer.leftNs = 0;
      else if (peer.leftNs === 0) peer.leftNs = nowNs;
    }
    this.#wanted = [...wanted.values()];
    const routesOf = (targets: readonly Target[]): readonly Route[] =>
      targets.flatMap((target) => {
        const peer = wanted.get(target.address);
        return peer === undefined ? [] : [{ peer, target }];
      });
    this.#sent = routesOf(plan.send);
    const isSent = ({ address }: Target): boolean =>
      plan.send.some((target) => target.address === address);
    const near = (target: Target): boolean => target.slot - plan.slot <= SEND_SLOTS_AHEAD_MAX;
    this.#spare = routesOf(plan.warm.filter((target) => near(target) && !isSent(target)));
    this.#reroute();
  }

  /** Begins the connections that are wanted, missing and allowed now. */
  connect(nowNs: number): void {
    for (const [place, peer] of this.#wanted.entries()) {
      if (!peer.mayConnect(nowNs) || !this.#isDue(peer, nowNs)) continue;
      if (!this.#makeRoom(place)) return;
      peer.connect(nowNs);
    }
  }

  /** In how many milliseconds `tick` may have something to do. */
  nextLookMs(nowNs: number): number {
    let waitMs = LOOK_LATE_MS;
    for (const peer of this.#byAddress.values()) waitMs = Math.min(waitMs, peer.nextLookMs(nowNs));
    return waitMs;
  }

  /** Everything that time brings; answers as `nextLookMs`. */
  tick(nowNs: number): number {
    for (const peer of this.#byAddress.values()) {
      peer.tick(nowNs);
      if (peer.leftNs !== 0) this.#letGo(peer, nowNs);
    }
    this.connect(nowNs);
    this.#recycle(nowNs);
    return this.nextLookMs(nowNs);
  }

  /** The edge has another identity: all connections are to be replaced. */
  outdate(): void {
    for (const peer of this.#byAddress.values()) peer.outdate();
  }

  shutDown(): void {
    for (const peer of this.#byAddress.values()) peer.shutDown();
  }

  /** Who is sent to is connected to, whatever its history. */
  #isDue(peer: Peer, nowNs: number): boolean {
    return peer.isDue(nowNs) || this.#sent.some((route) => route.peer === peer);
  }

  #reroute(): void {
    let missing = 0;
    for (const { peer } of this.#sent) if (!peer.live) missing += 1;
    if (missing === 0) {
      this.routes = this.#sent;
      return;
    }
    const stand = this.#spare.filter(({ peer }) => peer.live).slice(0, missing);
    this.routes = stand.length === 0 ? this.#sent : [...this.#sent, ...stand];
  }

  /** The peer of an address, made when there is room; null when there is none. */
  #peerOf(target: Target, wantedCount: number): Peer | null {
    if (wantedCount >= this.#options.connectionsMax) {
      this.#deps.counters.connectionsOverLimit += 1;
      return null;
    }
    const known = this.#byAddress.get(target.address);
    if (known !== undefined) {
      known.identity = target.identity;
      // It is wanted from now on, and those that come after it in the plan may need room.
      known.leftNs = 0;
      return known;
    }
    if (this.#byAddress.size >= PEERS_REMEMBERED_MAX) this.#forgetOne();
    const peer = new Peer(target, this.#deps, this.#options);
    this.#byAddress.set(target.address, peer);
    return peer;
  }

  /** Forgets the address that was met first of those that hold nothing. */
  #forgetOne(): void {
    for (const peer of this.#byAddress.values()) {
      if (peer.leftNs === 0 || peer.links > 0) continue;
      // Copies may still wait with it, or for their acknowledgements.
      peer.leave();
      this.#byAddress.delete(peer.address);
      return;
    }
  }

  #letGo(peer: Peer, nowNs: number): void {
    const leftMs = (nowNs - peer.leftNs) / NS_PER_MS;
    const { leaveGraceMs, lingerMs } = this.#options;
    if (leftMs < leaveGraceMs) return;
    const isIdle = peer.inFlight === 0 && peer.queued === 0;
    if (!isIdle && leftMs < leaveGraceMs + lingerMs) return;
    peer.leave();
    if (!peer.paced(nowNs)) this.#byAddress.delete(peer.address);
  }

  /**
   * Whether one more connection may be opened, for the leader at that place of what is wanted. One
   * that left the plan makes room if need be, or the one whose turn is furthest, if it is further.
   */
  #makeRoom(place: number): boolean {
    let links = 0;
    for (const peer of this.#byAddress.values()) links += peer.links;
    if (links < this.#options.connectionsMax) return true;
    const victim = this.#leastOfLeft() ?? this.#furthestAfter(place);
    victim?.leave();
    return victim !== null;
  }

  /** Of those that left the plan, the one whose turn is least likely to come again soon. */
  #leastOfLeft(): Peer | null {
    const { scorecard } = this.#deps;
    let least: Peer | null = null;
    let leastWorth = 0;
    for (const peer of this.#byAddress.values()) {
      if (peer.leftNs === 0 || peer.links === 0) continue;
      const { identity } = peer;
      const worth = this.#options.stakeShareOf(identity) * scorecard.standingOf(identity);
      const isLess = worth === leastWorth ? peer.leftNs < (least?.leftNs ?? 0) : worth < leastWorth;
      if (least !== null && !isLess) continue;
      least = peer;
      leastWorth = worth;
    }
    return least;
  }

  #furthestAfter(place: number): Peer | null {
    for (let index = this.#wanted.length - 1; index > place; index -= 1) {
      const peer = this.#wanted[index];
      if (peer !== undefined && peer.links > 0) return peer;
    }
    return null;
  }

  /**
   * Replaces at most one old connection at a time, so that the bound is passed by one at most, and
   * as many of another identity as the bound has room for.
   */
  #recycle(nowNs: number): void {
    let links = 0;
    let replacing = false;
    for (const peer of this.#byAddress.values()) {
      links += peer.links;
      replacing ||= peer.links > 1;
    }
    for (const peer of this.#wanted) {
      const hasRoom = peer.outdated && links < this.#options.connectionsMax;
      if ((replacing && !hasRoom) || !peer.mayRecycle(nowNs)) continue;
      peer.recycle(nowNs);
      replacing = true;
      links += 1;
    }
  }
}
