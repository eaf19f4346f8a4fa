/**
 * The running process's side of a hand-over: it starts its successor, and retires once that serves.
 *
 *   idle ─start─▶ starting ─serving─▶ retiring ─nothing in hand, or the time is up─▶ finished
 *    ▲               │ not ready in time, ended, told to stop
 *    └────failed─────┘
 *
 * Until the successor serves, this process accepts connections as before.
 */

import type { Clock, Timer } from "../../core/clock.ts";
import { NS_PER_MS, NS_PER_S } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { EdgeHandover, UpgradeCounts } from "../../edge/handover.ts";
import { RETIRING_LOOK_MS, RETIRING_MS_MAX, SUCCESSOR_KILL_MS } from "../limits.ts";
import type { Upgradable } from "../signals.ts";
import type { Systemd } from "../systemd.ts";
import { readFromSuccessor, type ToSuccessor } from "./messages.ts";

/** A started successor. */
export interface SuccessorProcess {
  readonly pid: number;
  /** Resolves when the message is on its way; rejects when the process is gone. */
  send(message: ToSuccessor): Promise<void>;
  kill(signal: "SIGTERM" | "SIGKILL"): void;
  onMessage(act: (message: unknown) => void): void;
  /** `how` says how it ended, for people. */
  onExit(act: (how: string) => void): void;
  /** Makes it a child of the system's first process. */
  leave(): Promise<void>;
}

export interface UpgradeDeps {
  readonly clock: Clock;
  readonly err: (line: string) => void;
  readonly edge: EdgeHandover;
  readonly systemd: Systemd;
  /** Continued here with each failure. */
  readonly counts: UpgradeCounts;
  /** @throws Error when the system starts no process */
  readonly spawn: () => Promise<SuccessorProcess>;
}

export interface UpgradeStatus {
  /** Number of the last start of a successor; 0: there was none. */
  readonly attempt: number;
  readonly state: "idle" | "starting" | "failed" | "retiring";
  /** Why the last attempt failed. */
  readonly reason: string | null;
  /** The process number of the successor. */
  readonly successor: number | null;
}

export interface Upgrade extends Upgradable {
  readonly status: UpgradeStatus;
}

interface Attempt {
  readonly process: SuccessorProcess;
  readonly timer: Timer;
  /** What the successor still waits for, and why it will not serve. */
  missing: readonly string[];
  reason: string | null;
  hasEnded: boolean;
  /** Resolves when all receipts are sent. */
  readonly receipts: Promise<void>;
  onEnd: () => void;
}

export function createUpgrade(deps: UpgradeDeps, timeoutMs: number): Upgrade {
  return new UpgradeState(deps, timeoutMs);
}

class UpgradeState implements Upgrade {
  status: UpgradeStatus = { attempt: 0, state: "idle", reason: null, successor: null };
  readonly finished: Promise<void>;
  readonly #deps: UpgradeDeps;
  readonly #timeoutMs: number;
  #onFinished = (): void => {};
  #current: Attempt | null = null;
  #startedNs = 0;
  #isStopping = false;

  constructor(deps: UpgradeDeps, timeoutMs: number) {
    this.#deps = deps;
    this.#timeoutMs = timeoutMs;
    this.finished = new Promise((resolve) => {
      this.#onFinished = resolve;
    });
  }

  get isRetiring(): boolean {
    return this.status.state === "retiring";
  }

  start(): void {
    const { clock, err, systemd } = this.#deps;
    if (this.status.state === "starting" || this.isRetiring) {
      err("upgrade: a successor was started already");
      return;
    }
    const attempt = this.status.attempt + 1;
    this.status = { attempt, state: "starting", reason: null, successor: null };
    systemd.reloading("starting a successor");
    this.#startedNs = clock.nowNs();
    void this.#spawn();
  }

  async #spawn(): Promise<void> {
    const { clock, err, edge, spawn } = this.#deps;
    let process: SuccessorProcess;
    try {
      const waitMs = edge.waitMs();
      if (waitMs > 0) throw new Error(tooEarly(waitMs));
      edge.lend();
      process = await spawn();
    } catch (error) {
      await this.#failed(`no process was started: ${messageOf(error)}`);
      return;
    }
    const timer = clock.after(this.#timeoutMs, () => this.#timedOut(current));
    const receipts = edge.receipts.start((message) => process.send({ kind: "receipts", message }));
    const current: Attempt = {
      ...{ process, timer, receipts, missing: [], reason: null, hasEnded: false },
      onEnd() {},
    };
    this.#current = current;
    this.status = { ...this.status, successor: process.pid };
    err(`upgrade: process ${process.pid} starts as the successor`);
    process.onMessage((message) => this.#onMessage(current, message));
    process.onExit((how) => this.#onExit(current, how));
    if (this.#isStopping) this.abort();
  }

  abort(): void {
    this.#isStopping = true;
    const current = this.#current;
    if (current !== null) this.#giveUp(current, "this process was told to stop");
  }

  #onMessage(current: Attempt, message: unknown): void {
    const told = readFromSuccessor(message);
    if (told?.kind === "ask" && this.isRetiring) this.#deps.edge.receipts.asked(told.number);
    if (told === null || current !== this.#current) return;
    if (told.kind === "waiting") current.missing = told.missing;
    else if (told.kind === "failed") current.reason ??= told.reason;
    else if (told.kind === "ask") this.#deps.edge.receipts.asked(told.number);
    else if (told.kind === "ready") void this.#release(current);
    // A successor that this process has ended says so too late.
    else if (current.reason === null) void this.#retire(current);
  }

  async #release(current: Attempt): Promise<void> {
    await current.receipts;
    if (current !== this.#current || current.reason !== null) return;
    try {
      await this.#deps.edge.release();
    } catch (error) {
      this.#giveUp(current, `the admin listener was not closed: ${messageOf(error)}`);
      return;
    }
    if (current !== this.#current || current.reason !== null) return;
    // A process that is gone is reported as ended.
    await current.process.send({ kind: "takeOver" }).catch(() => {});
  }

  async #retire({ process, timer }: Attempt): Promise<void> {
    const { clock, err, edge, systemd } = this.#deps;
    timer.cancel();
    this.#current = null;
    this.status = { ...this.status, state: "retiring" };
    edge.retire();
    await process.leave();
    systemd.follow(process.pid, `process ${process.pid} serves now`);
    err(`upgrade: process ${process.pid} serves; this one finishes its work`);
    const untilNs = clock.nowNs() + RETIRING_MS_MAX * NS_PER_MS;
    const look = clock.every(RETIRING_LOOK_MS, () => {
      const { connections, transactions, hasPredecessor } = edge.inHand();
      const isDone = connections === 0 && transactions === 0 && !hasPredecessor;
      if (!isDone && clock.nowNs() < untilNs) return;
      look.cancel();
      const before = hasPredecessor ? " and the process before" : "";
      const left = `${connections} connections and ${transactions} transactions${before}`;
      if (!isDone) err(`upgrade: after ${RETIRING_MS_MAX} ms ${left} are left: stopping`);
      this.#onFinished();
    });
  }

  #timedOut(current: Attempt): void {
    const { missing } = current;
    const what = missing.length === 0 ? "" : `; it waits for: ${missing.join(", ")}`;
    this.#giveUp(current, `not ready within ${this.#timeoutMs} ms${what}`);
  }

  /** Ends a successor that does not serve; once it has ended, this process goes on as before. */
  #giveUp(current: Attempt, reason: string): void {
    current.reason ??= reason;
    if (current.hasEnded) return;
    const { process, timer } = current;
    timer.cancel();
    process.kill("SIGTERM");
    const kill = this.#deps.clock.after(SUCCESSOR_KILL_MS, () => process.kill("SIGKILL"));
    current.onEnd = () => kill.cancel();
  }

  #onExit(current: Attempt, how: string): void {
    current.hasEnded = true;
    current.timer.cancel();
    current.onEnd();
    if (current !== this.#current) return;
    this.#current = null;
    void this.#failed(current.reason ?? `it ended ${how}; standard error says why`);
  }

  async #failed(reason: string): Promise<void> {
    const { clock, err, edge, systemd, counts } = this.#deps;
    let why = reason;
    counts.failed += 1;
    counts.lastSeconds = (clock.nowNs() - this.#startedNs) / NS_PER_S;
    edge.receipts.stop();
    if (!this.#isStopping) {
      try {
        await edge.takeBack();
      } catch (error) {
        why += `; and what was left to the successor is missing here: ${messageOf(error)}`;
      }
    }
    this.status = { ...this.status, state: "failed", reason: why, successor: null };
    err(`upgrade failed: ${why}`);
    if (!this.#isStopping) systemd.ready(`serving; the last upgrade failed: ${why}`);
  }
}

function tooEarly(waitMs: number): string {
  return (
    "the process that this one replaced may still have QUIC sockets; " +
    `try again in ${Math.ceil(waitMs / 1000)} s`
  );
}
