/**
 * The gate of a front, on any thread of a test: it lets in whoever it has a pass of, and charges
 * the limit where the main thread and the other fronts charge it, too. Everybody else has no owner
 * here, and a limit that is used up is refused here but not counted: those requests are the main
 * thread's. The real one is `native/src/submit/key_cache.rs`.
 *
 * A pass that was taken back lets nobody in from that moment on, also who found it before.
 */

import type { Clock } from "../../src/core/clock.ts";
import {
  barOf,
  type Gate,
  type GateCounters,
  type KeyOwner,
  type KeyRestriction,
  type LimitedBy,
  UNKNOWN_KEY,
} from "../../src/limits/gate.ts";
import { intervalNs, type Rate } from "../../src/limits/gcra.ts";
import { SharedCells } from "../../src/limits/global-state.ts";
import type { Pass, PassNews, PassPort, PassReturned } from "../../src/limits/key-cache-entry.ts";
import { LimitCells, passMarks } from "../../src/limits/shared-state.ts";

export interface PassGateDeps {
  readonly clock: Clock;
  /** From `passMemory`, the main thread's. */
  readonly memory: SharedArrayBuffer;
  /** Networks in CIDR notation, all of them valid. */
  readonly networksOf: (ranges: readonly string[]) => NonNullable<KeyRestriction["networks"]>;
  /** To the main thread. */
  readonly port: PassPort<PassReturned>;
}

export interface PassGate extends Gate {
  /** What the main thread says. */
  take(news: PassNews): void;
  put(pass: Pass): void;
  /** Says so to the main thread, whether it was there or not. */
  takeBack(token: string, place: number): void;
  readonly counters: PassGateCounters;
}

/** Keys that are not good, and requests over a limit, are counted by the main thread's gate. */
export interface PassGateCounters extends GateCounters {
  /** Passes that it has now. */
  readonly passes: number;
  /** Requests that it refused by a limit. */
  overLimit: number;
}

/** An owner that has a pass. */
interface Passed extends KeyOwner {
  readonly isShared: boolean;
  readonly accountCell: number;
  readonly keyCell: number;
  readonly place: number;
  /** Until it is taken back. */
  isGood: boolean;
}

export function createPassGate(deps: PassGateDeps): PassGate {
  const { clock, networksOf, port } = deps;
  const cells = new LimitCells(deps.memory);
  const shared = new SharedCells(deps.memory);
  const marks = passMarks(deps.memory);
  const passes = new Map<string, Passed>();
  const counters = newCounters(() => passes.size);
  let limitedBy: LimitedBy = "account";

  function refused(ownWait: number, accountWait: number): number {
    counters.overLimit += 1;
    limitedBy = ownWait > accountWait ? "key" : "account";
    return Math.max(ownWait, accountWait);
  }

  function accountWait({ accountCell, plan, isShared }: Passed, nowNs: number): number {
    if (isShared) return shared.waitNs(accountCell, nowNs, plan);
    return cells.waitNs(accountCell, nowNs, intervalNs(plan.ratePerSecond), plan.burst);
  }

  function put(pass: Pass): void {
    forget(pass.token);
    passes.set(pass.token, passedOf(pass, networksOf));
  }

  function takeBack(token: string, place: number): void {
    if (passes.get(token)?.place === place) forget(token);
    port.post({ kind: "passReturned", place });
  }

  function forget(token: string): void {
    const known = passes.get(token);
    if (known === undefined) return;
    known.isGood = false;
    passes.delete(token);
  }

  return {
    counters,
    get limitedBy() {
      return limitedBy;
    },
    find(token, origin) {
      const owner = passes.get(token);
      if (owner === undefined) return null;
      const { restriction, place } = owner;
      if (restriction !== null && barOf(restriction, origin, clock.unixMs()) !== null) return null;
      // Read first: a line of memory that nobody writes is in every processor's cache.
      if (marks[place] === 0) marks[place] = 1;
      return owner;
    },
    charge(owner, nowNs) {
      if (!isPassed(owner) || !owner.isGood) return refused(0, 1);
      const { accountCell, keyCell, plan, isShared } = owner;
      const own = owner.restriction?.limit ?? null;
      const ownWait = own === null ? 0 : charge(cells, keyCell, own, nowNs);
      if (ownWait > 0) return refused(ownWait, accountWait(owner, nowNs));
      const wait = isShared
        ? shared.tryCharge(accountCell, nowNs, plan)
        : charge(cells, accountCell, plan, nowNs);
      if (wait > 0) {
        if (own !== null) cells.giveBack(keyCell, intervalNs(own.ratePerSecond));
        return refused(0, wait);
      }
      counters.admitted += 1;
      return 0;
    },
    refusalOf: () => UNKNOWN_KEY,
    take(news) {
      if (news.kind === "pass") put(news.pass);
      else takeBack(news.token, news.place);
    },
    put,
    takeBack,
  };
}

function charge(
  cells: LimitCells,
  cell: number,
  { ratePerSecond, burst }: Rate,
  nowNs: number,
): number {
  return cells.tryCharge(cell, nowNs, intervalNs(ratePerSecond), burst);
}

function newCounters(passes: () => number): PassGateCounters {
  return {
    get passes() {
      return passes();
    },
    keysMissing: 0,
    keysUnknown: 0,
    keysBarred: 0,
    admitted: 0,
    limited: 0,
    overLimit: 0,
    accountsTracked: 0,
    accountsEvicted: 0,
  };
}

function isPassed(owner: KeyOwner): owner is Passed {
  return "isGood" in owner;
}

/** Made anew, so that all have one shape: what a port has copied may have another. */
function passedOf(pass: Pass, networksOf: PassGateDeps["networksOf"]): Passed {
  const { keyId, account, plan, expiresUnixMs, ranges, limit } = pass;
  const { isShared, accountCell, keyCell, place } = pass;
  const { name, ratePerSecond, burst, shared } = plan;
  const isNarrowed = expiresUnixMs !== null || ranges !== null || limit !== null;
  const networks = ranges === null ? null : networksOf(ranges);
  return {
    keyId,
    account,
    plan: { name, ratePerSecond, burst, shared },
    restriction: isNarrowed ? { expiresUnixMs, networks, limit } : null,
    isShared,
    accountCell,
    keyCell,
    place,
    isGood: true,
  };
}
