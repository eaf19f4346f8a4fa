/**
 * Asks the cluster, again and again, what became of the transactions in flight.
 *
 * Young ones are asked for at every tick, older ones less often, in requests of a bounded size and
 * number. What is due beyond that waits, and whoever waited is next, because the search goes on
 * where it stopped; how late it is can be seen in `lagNs`. A request that fails or takes too long
 * says nothing of its transactions: they are due again. While requests fail, fewer are made.
 * Several requests of one tick are made one after another, a while apart, because what is done for
 * one and for its answer is done on the thread that also serves clients; so is the look at all that
 * is in flight, which goes over several turns of the event loop where there is much.
 * While more is due than can be asked for, an answer brings the next request, so that what is in
 * flight does not pile up as long as the node keeps up.
 */

import { type Clock, NS_PER_MS, NS_PER_S, type Timer } from "../core/clock.ts";
import { STATUSES_PER_REQUEST } from "../core/limits.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import { NONE } from "./byte-store.ts";
import { type InFlightTable, PROCESSED, REQUESTED } from "./in-flight-table.ts";
import type { LandCounters } from "./land-counters.ts";
import {
  CHECKS_PER_SLICE,
  LANDINGS_PER_SLICE,
  STATUS_DEADLINE_MS,
  STATUS_REQUESTS_MAX,
} from "./limits.ts";
import type { ClusterView, StatusResponse, TxStatus } from "./ports.ts";

export interface StatusPollerDeps {
  readonly clock: Clock;
  readonly table: InFlightTable;
  readonly counters: LandCounters;
  readonly cluster: Pick<ClusterView, "fetchStatuses">;
  /** At each tick, before anything is asked for. */
  readonly onTick: (nowNs: number) => void;
  /** What a row is, at each tick; may end it. Answers whether it is still there. */
  readonly onCheck: (row: number, nowNs: number) => boolean;
  /** Something that an answer has to come after to say that a transaction is not there. */
  readonly stamp: () => number;
  /** One transaction's status; `stamp` is from before the request was made. May end the row. */
  readonly onStatus: (row: number, status: TxStatus | null, slot: number, stamp: number) => void;
}

/** One request in hand. */
interface Request {
  rows: readonly number[];
  ids: readonly number[];
  /** From when it was made; 0 while it is not. */
  stamp: number;
  /** Until it is made, then its deadline, then until more of the answer is taken. */
  timer: Timer | null;
  over: boolean;
  /** What came, until all of it is taken; null before. */
  response: StatusResponse | null;
  /** How many of its rows are taken. */
  handled: number;
}

/** A look at all that is in flight, until it is over. */
interface Search {
  /** Between two regular ticks it goes no further than to what may be asked for. */
  readonly isEarly: boolean;
  /** In a pause nothing is asked for; what time does to a row is done all the same. */
  readonly isPaused: boolean;
  readonly from: number;
  readonly rowsUsed: number;
  checked: number;
  lagNs: number;
  /** What is due and may be asked for, each row with the packet that it had then. */
  readonly rows: number[];
  readonly ids: number[];
  isCut: boolean;
}

/** Ages from which on a transaction is asked for at every second and every fourth tick only. */
const OLD_NS = 10 * NS_PER_S;
const VERY_OLD_NS = 40 * NS_PER_S;
/** Most ticks that are left out while requests fail. */
const PAUSE_TICKS_MAX = 16;
/** Requests of one tick are this part of a tick apart. */
const APART_SHARE = 1 / 8;
/** And this part while more is due than can be asked for at a time. */
const CATCHING_UP_SHARE = 1 / 64;
/** A row that is due within this share of a tick is taken with those that are due now. */
const EARLY_SHARE = 0.25;

export class StatusPoller {
  /** By how much the most overdue transaction was late at the last tick. */
  lagNs = 0;
  readonly #deps: StatusPollerDeps;
  readonly #periodMs: number;
  readonly #requests = new Set<Request>();
  #search: Search | null = null;
  readonly #slicer: TimeSlicer;
  #running = false;
  #timer: Timer | null = null;
  /** A tick between two of the regular ones. */
  #early: Timer | null = null;
  /** Whether more was due at the last tick than could be asked for. */
  #isCut = false;
  /** The row at which the next search begins. */
  #cursor = 0;
  /** From when on the next request may be made. */
  #freeNs = 0;
  /** Ticks to leave out, and how many it were after the last failure. */
  #pause = 0;
  #pauseLength = 0;

  constructor(deps: StatusPollerDeps, periodMs: number) {
    this.#deps = deps;
    this.#periodMs = periodMs;
    this.#slicer = createTimeSlicer(deps.clock, () => this.#searchNext());
  }

  start(): void {
    this.#running = true;
    const { table, clock } = this.#deps;
    if (table.count > 0) this.#wake(clock.nowNs());
  }

  /** Nothing that is still in hand is listened to any more. */
  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#early?.cancel();
    this.#early = null;
    this.#slicer.stop();
    this.#search = null;
    for (const request of this.#requests) {
      // What has come is taken still.
      this.#handle(request, STATUSES_PER_REQUEST);
      this.#close(request);
    }
  }

  /** When a transaction that is tracked now is asked for first. Hot path. */
  firstNs(nowNs: number): number {
    if (this.#timer === null) this.#wake(nowNs);
    return nowNs + this.#periodMs * NS_PER_MS * (1 - EARLY_SHARE);
  }

  /** Ticks until a tick finds that nothing is in flight. */
  #wake(nowNs: number): void {
    if (!this.#running) return;
    this.#deps.onTick(nowNs);
    this.#timer = this.#deps.clock.every(this.#periodMs, () => this.#tick());
  }

  #tick(): void {
    const { table, onTick, clock } = this.#deps;
    onTick(clock.nowNs());
    const isPaused = this.#pause > 0;
    this.#searchAll(false);
    if (isPaused) this.#pause -= 1;
    else if (table.count === 0) {
      this.#timer?.cancel();
      this.#timer = null;
    }
  }

  /** Looks at what is in flight, unless that is being done, and asks for what is due. */
  #searchAll(isEarly: boolean): void {
    if (this.#search !== null && (isEarly || !this.#search.isEarly)) return;
    this.#slicer.stop();
    this.#search = {
      isEarly,
      isPaused: this.#pause > 0,
      from: this.#cursor,
      rowsUsed: this.#deps.table.rowsUsed,
      checked: 0,
      lagNs: 0,
      rows: [],
      ids: [],
      isCut: false,
    };
    this.#slicer.start();
  }

  /** Looks at some rows; once it is through, asks. Answers whether there are more. */
  #searchNext(): boolean {
    const search = this.#search;
    if (search === null) return false;
    const nowNs = this.#deps.clock.nowNs();
    if (this.#checkNext(search, nowNs)) return true;
    this.#search = null;
    this.#isCut = search.isCut;
    if (!search.isEarly) this.lagNs = search.lagNs;
    if (!search.isPaused && this.#pause === 0) this.#request(search, nowNs);
    return false;
  }

  /** As many looks, and as many ends, as one turn has. Answers whether there are more. */
  #checkNext(search: Search, nowNs: number): boolean {
    const { table, onCheck } = this.#deps;
    const { from, rowsUsed, rows, ids, isEarly } = search;
    const max = (STATUS_REQUESTS_MAX - this.#requests.size) * STATUSES_PER_REQUEST;
    const soonNs = nowNs + this.#periodMs * NS_PER_MS * EARLY_SHARE;
    const last = Math.min(rowsUsed, search.checked + CHECKS_PER_SLICE);
    let ends = 0;
    while (search.checked < last && ends < LANDINGS_PER_SLICE) {
      const row = (from + search.checked) % rowsUsed;
      const id = table.packetId[row] ?? NONE;
      search.checked += 1;
      if (id === NONE) continue;
      if (!onCheck(row, nowNs)) {
        ends += 1;
        continue;
      }
      const dueNs = table.nextPollNs[row] ?? 0;
      if (dueNs > soonNs || table.is(row, REQUESTED)) continue;
      search.lagNs = Math.max(search.lagNs, nowNs - dueNs);
      if (rows.length < max) {
        rows.push(row);
        ids.push(id);
      } else {
        search.isCut = true;
        if (isEarly) return false;
      }
    }
    return search.checked < rowsUsed;
  }

  /** Asks for what a search found, in requests that are a while apart. */
  #request(found: Search, nowNs: number): void {
    const { table, clock } = this.#deps;
    const apart = found.isCut ? CATCHING_UP_SHARE : APART_SHARE;
    for (let from = 0; from < found.rows.length; from += STATUSES_PER_REQUEST) {
      const rows = found.rows.slice(from, from + STATUSES_PER_REQUEST);
      const ids = found.ids.slice(from, from + STATUSES_PER_REQUEST);
      this.#cursor = (rows.at(-1) ?? 0) + 1;
      for (const [index, row] of rows.entries()) {
        if (table.holds(row, ids[index] ?? NONE)) table.raise(row, REQUESTED);
      }
      const request: Request = {
        rows,
        ids,
        stamp: 0,
        timer: null,
        over: false,
        response: null,
        handled: 0,
      };
      this.#requests.add(request);
      const atNs = Math.max(nowNs, this.#freeNs);
      this.#freeNs = atNs + apart * this.#periodMs * NS_PER_MS;
      if (atNs === nowNs) this.#fetch(request);
      else request.timer = clock.after((atNs - nowNs) / NS_PER_MS, () => this.#fetch(request));
    }
  }

  #fetch(request: Request): void {
    const { table, counters, cluster, clock, stamp } = this.#deps;
    const isThere = (row: number, index: number) => table.holds(row, request.ids[index] ?? NONE);
    if (!request.rows.every(isThere)) {
      const there = request.rows.map(isThere);
      request.rows = request.rows.filter((_, index) => there[index]);
      request.ids = request.ids.filter((_, index) => there[index]);
    }
    if (request.rows.length === 0) {
      this.#close(request);
      return;
    }
    request.stamp = stamp();
    counters.statusesRequested += request.rows.length;
    request.timer = clock.after(STATUS_DEADLINE_MS, () => {
      counters.requestsLate += 1;
      this.#failed(request);
    });
    cluster.fetchStatuses(table.signatures(request.rows)).then(
      (response) => this.#onResponse(request, response),
      () => {
        if (request.over) return;
        counters.requestsFailed += 1;
        this.#failed(request);
      },
    );
  }

  #onResponse(request: Request, response: StatusResponse): void {
    if (request.over) return;
    const { counters } = this.#deps;
    if (response.statuses.length !== request.rows.length) {
      counters.requestsFailed += 1;
      this.#failed(request);
      return;
    }
    counters.requestsSucceeded += 1;
    this.#pauseLength = 0;
    request.timer?.cancel();
    request.response = response;
    this.#handle(request, LANDINGS_PER_SLICE);
  }

  /** Takes so many statuses of its answer, and the others in turns of their own. */
  #handle(request: Request, max: number): void {
    const { table, clock, onStatus } = this.#deps;
    const { response, rows, ids } = request;
    if (response === null) return;
    const nowNs = clock.nowNs();
    const end = Math.min(rows.length, request.handled + max);
    for (; request.handled < end; request.handled += 1) {
      const row = rows[request.handled] ?? NONE;
      if (!table.holds(row, ids[request.handled] ?? NONE)) continue;
      table.nextPollNs[row] = nowNs + this.#waitNs(row, nowNs);
      onStatus(row, response.statuses[request.handled] ?? null, response.slot, request.stamp);
    }
    if (end < rows.length) {
      request.timer = clock.after(0, () => this.#handle(request, LANDINGS_PER_SLICE));
      return;
    }
    this.#close(request);
    if (this.#isCut) this.#tickEarly();
  }

  /** Once a request is answered another can be made: as many as the node answers, and no more. */
  #tickEarly(): void {
    if (this.#early !== null || this.#pause > 0 || !this.#running) return;
    this.#early = this.#deps.clock.after(this.#periodMs * CATCHING_UP_SHARE, () => {
      this.#early = null;
      // A pause is counted in regular ticks.
      if (this.#pause === 0) this.#searchAll(true);
    });
  }

  #waitNs(row: number, nowNs: number): number {
    const { table } = this.#deps;
    const ageNs = nowNs - (table.sinceNs[row] ?? 0);
    const tickNs = this.#periodMs * NS_PER_MS;
    // What is in a block already is to be confirmed within a second.
    if (table.is(row, PROCESSED) || ageNs < OLD_NS) return tickNs * (1 - EARLY_SHARE);
    return tickNs * (ageNs < VERY_OLD_NS ? 2 : 4);
  }

  #failed(request: Request): void {
    this.#close(request);
    // Of the requests that were in hand when the first of them failed, the others say no more.
    if (this.#pause > 0) return;
    this.#pauseLength = Math.min(Math.max(1, this.#pauseLength * 2), PAUSE_TICKS_MAX);
    this.#pause = this.#pauseLength;
  }

  /** Its transactions may be asked for again. */
  #close(request: Request): void {
    const { table } = this.#deps;
    request.over = true;
    request.timer?.cancel();
    this.#requests.delete(request);
    for (const [index, row] of request.rows.entries()) {
      if (table.holds(row, request.ids[index] ?? NONE)) table.lower(row, REQUESTED);
    }
  }
}
