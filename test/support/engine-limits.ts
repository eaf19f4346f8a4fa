/**
 * The limits that all edges share, as the native engine keeps them (`limit_registry.rs`), on the
 * thread of a test.
 */

import type { BucketStates } from "../../src/accounts/global-limits/bucket.ts";
import { charged, intervalNs, type Rate, waitNs } from "../../src/limits/gcra.ts";

interface State {
  readonly account: string;
  fullNs: number;
  count: number;
  intervalNs: number;
  isListed: boolean;
}

export class EngineLimits implements BucketStates {
  readonly #states = new Map<string, State>();
  readonly #charged: State[] = [];
  readonly #watched: State[] = [];
  #edgeCount = 1;

  state(account: string): State {
    const known = this.#states.get(account);
    if (known !== undefined) return known;
    const state = { account, fullNs: 0, count: 0, intervalNs: 0, isListed: false };
    this.#states.set(account, state);
    return state;
  }

  /** As any thread of the edge charges one request. */
  tryCharge(account: string, nowNs: number, rate: Rate): number {
    const state = this.state(account);
    const interval = intervalNs(rate.ratePerSecond) * this.#edgeCount;
    const wait = this.waitNs(account, nowNs, rate);
    if (wait > 0) return wait;
    state.intervalNs = intervalNs(rate.ratePerSecond);
    state.count = (state.count + 1) | 0;
    state.fullNs = charged(state.fullNs, nowNs, interval);
    this.#list(state);
    return 0;
  }

  waitNs(account: string, nowNs: number, { ratePerSecond, burst }: Rate): number {
    const share = Math.max(1, Math.floor(burst / this.#edgeCount));
    const interval = intervalNs(ratePerSecond) * this.#edgeCount;
    return waitNs(this.state(account).fullNs, nowNs, interval, share);
  }

  takeCharged(countMax: number): readonly { account: string; limitSlot: number }[] {
    return this.#charged.splice(0, countMax).map((state) => {
      return { account: state.account, limitSlot: this.#watched.push(state) - 1 };
    });
  }

  read(limitSlot: number) {
    const { fullNs, count, intervalNs } = this.#at(limitSlot);
    return { fullNs, count, intervalNs };
  }

  replace(limitSlot: number, wasNs: number, fullNs: number): boolean {
    const state = this.#at(limitSlot);
    const isSame = state.fullNs === wasNs;
    if (isSame) state.fullNs = fullNs;
    return isSame;
  }

  release(limitSlot: number, count: number): void {
    const state = this.#at(limitSlot);
    state.isListed = false;
    state.count = (state.count - count) | 0;
    if (state.count !== 0) this.#list(state);
  }

  setEdgeCount(count: number): void {
    this.#edgeCount = count;
  }

  #list(state: State): void {
    if (state.isListed) return;
    state.isListed = true;
    this.#charged.push(state);
  }

  #at(limitSlot: number): State {
    const state = this.#watched[limitSlot];
    if (state === undefined) throw new RangeError(`no limit is watched in slot ${limitSlot}`);
    return state;
  }
}
