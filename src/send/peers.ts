/**
 * All leaders that matter now or did a moment ago. Follows the plan: makes connections to what is
 * wanted, nearest turn first, and closes what left it after a grace, because plans move on while
 * copies still fly. An address that left is remembered as long as its pacing holds, so that a
 * leader who comes back is not tried more often than one who stays.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Plan, Target } from "../core/flow.ts";
import { PEERS_REMEMBERED_MAX } from "../core/limits.ts";
import { Peer, type PeerDeps, type PeerOptions } from "./peer.ts";

export interface PeersOptions extends PeerOptions {
  readonly connectionsMax: number;
  /** How long a connection stays open after the plan dropped it. */
  readonly leaveGraceMs: number;
}

/** A leader of `plan.send` and its peer. */
export interface Route {
  readonly peer: Peer;
  readonly target: Target;
}

export class Peers {
  /** In the order of `plan.send`. */
  routes: readonly Route[] = [];
  readonly #deps: PeerDeps;
  readonly #options: PeersOptions;
  readonly #byAddress = new Map<string, Peer>();
  /** What the plan wants, nearest turn first, as far as the bound goes. */
  #wanted: readonly Peer[] = [];

  constructor(deps: PeerDeps, options: PeersOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  all(): readonly Peer[] {
    return [...this.#byAddress.values()];
  }

  /** Replaces what is wanted; `connect` makes the connections. */
  use(plan: Plan, nowNs: number): void {
    const wanted = new Map<string, Peer>();
    for (const targets of [plan.send, plan.warm]) {
      for (const target of targets) {
        const peer = wanted.get(target.address) ?? this.#peerOf(target, wanted.size);
        if (peer === null) continue;
        wanted.set(target.address, peer);
      }
    }
    for (const peer of this.#byAddress.values()) {
      if (wanted.has(peer.address)) peer.leftNs = 0;
      else if (peer.leftNs === 0) peer.leftNs = nowNs;
    }
    this.#wanted = [...wanted.values()];
    this.routes = plan.send.flatMap((target) => {
      const peer = wanted.get(target.address);
      return peer === undefined ? [] : [{ peer, target }];
    });
  }

  /** Begins the connections that are wanted, missing and allowed now. */
  connect(nowNs: number): void {
    for (const peer of this.#wanted) {
      if (!peer.mayConnect(nowNs)) continue;
      if (!this.#makeRoom()) return;
      peer.connect(nowNs);
    }
  }

  tick(nowNs: number): void {
    for (const peer of this.#byAddress.values()) {
      peer.tick(nowNs);
      if (peer.leftNs !== 0) this.#letGo(peer, nowNs);
    }
    this.connect(nowNs);
    this.#recycle(nowNs);
  }

  shutDown(): void {
    for (const peer of this.#byAddress.values()) peer.shutDown();
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

  /** Whether one more connection may be opened; closes one that left the plan if need be. */
  #makeRoom(): boolean {
    let links = 0;
    let oldest: Peer | null = null;
    for (const peer of this.#byAddress.values()) {
      links += peer.links;
      if (peer.leftNs === 0 || peer.links === 0) continue;
      if (oldest === null || peer.leftNs < oldest.leftNs) oldest = peer;
    }
    if (links < this.#options.connectionsMax) return true;
    if (oldest === null) return false;
    oldest.leave();
    return true;
  }

  /** Replaces at most one connection at a time, so that the bound is passed by one at most. */
  #recycle(nowNs: number): void {
    let candidate: Peer | null = null;
    for (const peer of this.#wanted) {
      if (peer.links > 1) return;
      if (candidate === null && peer.mayRecycle(nowNs)) candidate = peer;
    }
    candidate?.recycle(nowNs);
  }
}
