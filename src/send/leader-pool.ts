/**
 * All leaders in the plan, and those that recently left it. Follows the plan: connects to wanted
 * leaders, nearest leader window first, and closes the connection of a leader that left only after
 * a grace period, because deliveries may still be in flight. The reconnect backoff of an address
 * that left is remembered, so that a returning leader is not tried more often than one that stayed.
 *
 * Where a leader of the plan has no live connection, the next leader that has one receives its
 * deliveries as well, so that the number of leaders reached does not drop. The send targets are
 * rebuilt when a connection opens or closes, not per transaction.
 */

import { NS_PER_MS } from "../core/clock.ts";
import type { Plan, Target } from "../core/flow.ts";
import { SEND_SLOTS_AHEAD_MAX } from "../core/limits.ts";
import { Leader, type LeaderDeps, type LeaderOptions } from "./leader.ts";
import { LEADERS_REMEMBERED_MAX } from "./limits.ts";
import { POLL_SLOW_MS } from "./poll-timer.ts";

export interface LeaderPoolOptions extends LeaderOptions {
  readonly connectionsMax: number;
  /** How long a connection stays open after its leader left the plan. */
  readonly leaveGraceMs: number;
  readonly slotTimeMs: () => number;
  /** A leader's share of all stake, which tells how soon its next leader window comes. */
  readonly stakeShareOf: (identity: string) => number;
}

export class LeaderPool {
  /**
   * In the order of `plan.send`, followed by the substitutes for leaders without a live connection.
   */
  sendTargets: readonly Leader[] = [];
  readonly #deps: LeaderDeps;
  readonly #options: LeaderPoolOptions;
  readonly #byAddress = new Map<string, Leader>();
  /** The leaders that the plan wants, nearest leader window first, up to the bound. */
  #wanted: readonly Leader[] = [];
  /** The leaders that the plan sends to, and those near enough to replace them. */
  #sent: readonly Leader[] = [];
  #standby: readonly Leader[] = [];

  constructor(deps: Omit<LeaderDeps, "onChange">, options: LeaderPoolOptions) {
    this.#deps = { ...deps, onChange: () => this.#updateSendTargets() };
    this.#options = options;
  }

  /** Leaders that the plan sends to and that are opening: `Leader.isOpening`. */
  get openingCount(): number {
    const nowNs = this.#deps.clock.nowNs();
    return this.#sent.filter((leader) => leader.isOpening(nowNs)).length;
  }

  all(): readonly Leader[] {
    return [...this.#byAddress.values()];
  }

  /** Replaces the wanted leaders, and ranks what is queued; `connect` opens the connections. */
  use(plan: Plan, nowNs: number): void {
    const wanted = new Map<string, Leader>();
    const slotNs = this.#options.slotTimeMs() * NS_PER_MS;
    for (const target of [...plan.send, ...plan.warm]) {
      if (wanted.has(target.address)) continue;
      const leader = this.#leaderOf(target, wanted.size);
      if (leader === null) continue;
      leader.windowStartNs = nowNs + (target.slot - plan.slot) * slotNs;
      wanted.set(target.address, leader);
    }
    for (const leader of this.#byAddress.values()) {
      leader.deliveries.rank();
      if (wanted.has(leader.address)) leader.leftNs = 0;
      else if (leader.leftNs === 0) leader.leftNs = nowNs;
    }
    this.#wanted = [...wanted.values()];
    const leadersOf = (targets: readonly Target[]): readonly Leader[] =>
      targets.flatMap(({ address }) => wanted.get(address) ?? []);
    this.#sent = leadersOf(plan.send);
    const isSent = ({ address }: Target): boolean =>
      plan.send.some((target) => target.address === address);
    const near = (target: Target): boolean => target.slot - plan.slot <= SEND_SLOTS_AHEAD_MAX;
    this.#standby = leadersOf(plan.warm.filter((target) => near(target) && !isSent(target)));
    this.#updateSendTargets();
  }

  /** Opens the wanted connections that are missing and allowed now. */
  connect(nowNs: number): void {
    for (const [place, leader] of this.#wanted.entries()) {
      if (!leader.mayConnect(nowNs) || !this.#isDue(leader, nowNs)) continue;
      if (!this.#makeRoomFor(place)) return;
      leader.connect(nowNs);
    }
  }

  /** Milliseconds until `tick` may have work. */
  nextPollMs(nowNs: number): number {
    let waitMs = POLL_SLOW_MS;
    for (const leader of this.#byAddress.values())
      waitMs = Math.min(waitMs, leader.nextPollMs(nowNs));
    return waitMs;
  }

  /** Runs all time-driven work; returns as `nextPollMs`. */
  tick(nowNs: number): number {
    for (const leader of this.#byAddress.values()) {
      leader.tick(nowNs);
      if (leader.leftNs !== 0) this.#closeLeft(leader, nowNs);
    }
    this.connect(nowNs);
    this.#recycle(nowNs);
    return this.nextPollMs(nowNs);
  }

  /** The identity of this edge changed: all connections must be replaced. */
  outdate(): void {
    for (const leader of this.#byAddress.values()) leader.outdate();
  }

  shutDown(): void {
    for (const leader of this.#byAddress.values()) leader.shutDown();
  }

  /** A leader that is sent to is always due, whatever its history. */
  #isDue(leader: Leader, nowNs: number): boolean {
    return leader.isDue(nowNs) || this.#sent.includes(leader);
  }

  #updateSendTargets(): void {
    let missing = 0;
    for (const leader of this.#sent) if (!leader.live) missing += 1;
    if (missing === 0) {
      this.sendTargets = this.#sent;
      return;
    }
    const stand = this.#standby.filter(({ live }) => live).slice(0, missing);
    this.sendTargets = stand.length === 0 ? this.#sent : [...this.#sent, ...stand];
  }

  /** The leader of an address, created when there is room; null when there is none. */
  #leaderOf(target: Target, wantedCount: number): Leader | null {
    if (wantedCount >= this.#options.connectionsMax) {
      this.#deps.counters.connectionsOverLimit += 1;
      return null;
    }
    const known = this.#byAddress.get(target.address);
    if (known !== undefined) {
      known.target = target;
      // It is wanted again, and later leaders of the plan may need the room.
      known.leftNs = 0;
      return known;
    }
    if (this.#byAddress.size >= LEADERS_REMEMBERED_MAX) this.#forgetOne();
    const leader = new Leader(target, this.#deps, this.#options);
    this.#byAddress.set(target.address, leader);
    return leader;
  }

  /** Forgets the first known address without a connection. */
  #forgetOne(): void {
    for (const leader of this.#byAddress.values()) {
      if (leader.leftNs === 0 || leader.openConnections > 0) continue;
      // Deliveries may still be queued or await acknowledgement.
      leader.leave();
      this.#byAddress.delete(leader.address);
      return;
    }
  }

  #closeLeft(leader: Leader, nowNs: number): void {
    const leftMs = (nowNs - leader.leftNs) / NS_PER_MS;
    const { leaveGraceMs, closeTimeoutMs } = this.#options;
    if (leftMs < leaveGraceMs) return;
    const isIdle = leader.inFlight === 0 && leader.queued === 0;
    if (!isIdle && leftMs < leaveGraceMs + closeTimeoutMs) return;
    leader.leave();
    if (!leader.inBackoff(nowNs)) this.#byAddress.delete(leader.address);
  }

  /**
   * Whether one more connection may be opened, for the wanted leader at that index. If needed, a
   * leader that left the plan is closed, or else the wanted one with a later leader window.
   */
  #makeRoomFor(place: number): boolean {
    let openConnections = 0;
    for (const leader of this.#byAddress.values()) openConnections += leader.openConnections;
    if (openConnections < this.#options.connectionsMax) return true;
    const victim = this.#leastValuable() ?? this.#furthestAfter(place);
    victim?.leave();
    return victim !== null;
  }

  /** Among the leaders that left the plan, the one least likely to have a leader window soon. */
  #leastValuable(): Leader | null {
    const { leaderStats } = this.#deps;
    let least: Leader | null = null;
    let leastValue = 0;
    for (const leader of this.#byAddress.values()) {
      if (leader.leftNs === 0 || leader.openConnections === 0) continue;
      const { identity } = leader;
      const value = this.#options.stakeShareOf(identity) * leaderStats.reliabilityOf(identity);
      const isLess =
        value === leastValue ? leader.leftNs < (least?.leftNs ?? 0) : value < leastValue;
      if (least !== null && !isLess) continue;
      least = leader;
      leastValue = value;
    }
    return least;
  }

  #furthestAfter(place: number): Leader | null {
    for (let index = this.#wanted.length - 1; index > place; index -= 1) {
      const leader = this.#wanted[index];
      if (leader !== undefined && leader.openConnections > 0) return leader;
    }
    return null;
  }

  /**
   * Replaces at most one old connection at a time, so that the bound is exceeded by at most one,
   * and as many with a previous identity as fit within the bound.
   */
  #recycle(nowNs: number): void {
    let openConnections = 0;
    let replacing = false;
    for (const leader of this.#byAddress.values()) {
      openConnections += leader.openConnections;
      replacing ||= leader.openConnections > 1;
    }
    for (const leader of this.#wanted) {
      const hasRoom = leader.outdated && openConnections < this.#options.connectionsMax;
      if ((replacing && !hasRoom) || !leader.mayRecycle(nowNs)) continue;
      leader.recycle(nowNs);
      replacing = true;
      openConnections += 1;
    }
  }
}
