/**
 * Polls the cluster for the statuses of transactions in flight.
 *
 * Young ones are requested at every tick, older ones after a share of their age, in requests of
 * bounded size and number. Further due rows wait and are next, because the scan resumes where it
 * stopped; `lagNs` shows the delay. After a failed or late request its transactions are due again;
 * while requests fail, fewer are made. Requests of one tick are spaced out, because their work
 * shares the thread that serves clients; for the same reason a large scan runs over several event
 * loop turns. While more is due than can be requested, each response triggers the next request, so
 * that no backlog builds up as long as the node keeps up.
 */

import { type Clock, NS_PER_MS, type Timer } from "../core/clock.ts";
import { STATUSES_PER_REQUEST } from "../core/limits.ts";
import { createTimeSlicer, type TimeSlicer } from "../runtime/time-slice.ts";
import { NONE } from "./byte-store.ts";
import { type InFlightTable, PROCESSED, REQUESTED, UNKNOWN } from "./in-flight-table.ts";
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
  /** Called at each tick, before any request. */
  readonly onTick: (nowNs: number) => void;
  /** Called for each row at each tick; may end it. Returns whether the row still exists. */
  readonly onCheck: (row: number, nowNs: number) => boolean;
  /** A value that a response must postdate to prove that a transaction is absent. */
  readonly stamp: () => number;
  /** One transaction's status; `stamp` is from before the request was made. May end the row. */
  readonly onStatus: (row: number, status: TxStatus | null, slot: number, stamp: number) => void;
}

/** One pending request. */
interface Request {
  rows: readonly number[];
  ids: readonly number[];
  /** The stamp from before the request was made; 0 before. */
  stamp: number;
  /** Delays the request; then its deadline; then delays the next slice of the response. */
  timer: Timer | null;
  over: boolean;
  /** The response, until all of it is handled; null before. */
  response: StatusResponse | null;
  /** The number of rows handled. */
  handled: number;
}

/** A scan of all rows in flight, until it ends. */
interface Search {
  /** Between two regular ticks the scan stops once the requests are full. */
  readonly isEarly: boolean;
  /** In a pause no request is made, but rows still age and expire. */
  readonly isPaused: boolean;
  readonly from: number;
  readonly rowsUsed: number;
  checked: number;
  lagNs: number;
  /** Due rows that may be requested, each with the packet that it held at that time. */
  readonly rows: number[];
  readonly ids: number[];
  isCut: boolean;
}

/** The share of its age after which a transaction is requested again, and the ticks at most. */
const AGE_SHARE = 1 / 8;
const WAIT_TICKS_MAX = 4;
/** Maximum number of ticks skipped while requests fail. */
const PAUSE_TICKS_MAX = 16;
/** The distance between the requests of one tick, as a share of a tick. */
const APART_SHARE = 1 / 8;
/** The same while more rows are due than one tick may request. */
const CATCHING_UP_SHARE = 1 / 64;
/** A row that is due within this share of a tick is requested with those that are due now. */
const EARLY_SHARE = 0.25;

export class StatusPoller {
  /** The delay of the most overdue transaction at the last tick. */
  lagNs = 0;
  readonly #deps: StatusPollerDeps;
  readonly #periodMs: number;
  readonly #requests = new Set<Request>();
  #search: Search | null = null;
  readonly #slicer: TimeSlicer;
  #running = false;
  #timer: Timer | null = null;
  /** An additional tick between two regular ones. */
  #early: Timer | null = null;
  /** Whether more rows were due at the last tick than it could request. */
  #isCut = false;
  /** The row at which the next search begins. */
  #cursor = 0;
  /** The earliest time of the next request. */
  #freeNs = 0;
  /** Ticks left to skip, and the number skipped after the last failure. */
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

  /** Ignores everything still pending. */
  stop(): void {
    this.#running = false;
    this.#timer?.cancel();
    this.#timer = null;
    this.#early?.cancel();
    this.#early = null;
    this.#slicer.stop();
    this.#search = null;
    for (const request of this.#requests) {
      // Responses already received are still processed.
      this.#handle(request, STATUSES_PER_REQUEST);
      this.#close(request);
    }
  }

  /** When a newly tracked transaction is first requested. Hot path. */
  firstNs(nowNs: number): number {
    if (this.#timer === null) this.#wake(nowNs);
    return nowNs + this.#periodMs * NS_PER_MS * (1 - EARLY_SHARE);
  }

  /** Starts the ticks, which end when a tick finds nothing in flight. */
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

  /** Scans all rows, unless a scan runs, and requests the due ones. */
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

  /** Scans a slice of rows; requests the due ones after the last. Returns whether rows remain. */
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

  /** Checks one slice of rows and ends some. Returns whether rows remain. */
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

  /** Requests the rows that a search found, in requests spaced out in time. */
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

  /** Processes up to `max` statuses of the response, and the others in later slices. */
  #handle(request: Request, max: number): void {
    const { table, clock, onStatus } = this.#deps;
    const { response, rows, ids } = request;
    if (response === null) return;
    const nowNs = clock.nowNs();
    const end = Math.min(rows.length, request.handled + max);
    for (; request.handled < end; request.handled += 1) {
      const row = rows[request.handled] ?? NONE;
      const id = ids[request.handled] ?? NONE;
      if (!table.holds(row, id)) continue;
      onStatus(row, response.statuses[request.handled] ?? null, response.slot, request.stamp);
      if (table.holds(row, id)) table.nextPollNs[row] = nowNs + this.#waitNs(row, nowNs);
    }
    if (end < rows.length) {
      request.timer = clock.after(0, () => this.#handle(request, LANDINGS_PER_SLICE));
      return;
    }
    this.#close(request);
    if (this.#isCut) this.#tickEarly();
  }

  /** Starts the next search after a response, so that the node sets the pace. */
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
    const tickNs = this.#periodMs * NS_PER_MS;
    const ageNs = nowNs - (table.sinceNs[row] ?? 0);
    // One in a processed block is confirmed within a second, and one that has expired ends soon.
    const endsSoon = table.is(row, PROCESSED) || table.expiredSlot[row] !== UNKNOWN;
    const shareNs = endsSoon ? 0 : ageNs * AGE_SHARE;
    const waitNs = Math.max(tickNs, Math.min(shareNs, tickNs * WAIT_TICKS_MAX));
    return waitNs - tickNs * EARLY_SHARE;
  }

  #failed(request: Request): void {
    this.#close(request);
    // Ignores further failures of requests pending when the first one failed.
    if (this.#pause > 0) return;
    this.#pauseLength = Math.min(Math.max(1, this.#pauseLength * 2), PAUSE_TICKS_MAX);
    this.#pause = this.#pauseLength;
  }

  /** Ends a request; its transactions may be requested again. */
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
