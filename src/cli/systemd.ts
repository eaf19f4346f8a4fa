/**
 * What a service tells systemd: that it serves, stops, hands over to another process or still runs.
 * The messages are those of `sd_notify(3)`, systemd 252; without NOTIFY_SOCKET there are none.
 *
 * They go through the native engine, because Node has no Unix datagram sockets. A service without
 * that engine says on standard error that systemd will not hear from it.
 */

import type { Clock, Timer } from "../core/clock.ts";
import { NS_PER_MS } from "../core/clock.ts";
import { OK } from "../native/contract.ts";
import { loadNative } from "../native/load.ts";
import { WATCHDOG_PERIOD_MS_MIN } from "./limits.ts";
import type { Stoppable } from "./signals.ts";

export interface Systemd {
  /** It serves; from now on the watchdog hears from this process's event loop. */
  ready(status: string): void;
  /** It starts a process that shall replace it; `ready` or `follow` ends that. */
  reloading(status: string): void;
  stopping(status: string): void;
  /** The service's main process is another one now, which does all further reports. */
  follow(pid: number, status: string): void;
}

export interface SystemdDeps {
  readonly clock: Clock;
  readonly err: (line: string) => void;
  /** Sends one message to a socket, and returns whether it could; null: nothing can send. */
  readonly send: ((socket: string, message: string) => boolean) | null;
}

/** The variables that systemd sets. */
export interface SystemdVariables {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
  readonly WATCHDOG_PID?: string | undefined;
}

const SILENT: Systemd = { ready() {}, reloading() {}, stopping() {}, follow() {} };

export function createSystemd(
  variables: SystemdVariables,
  pid: number,
  { clock, err, send }: SystemdDeps,
): Systemd {
  const socket = variables.NOTIFY_SOCKET ?? "";
  if (socket === "") return SILENT;
  if (send === null) {
    err(
      "NOTIFY_SOCKET is set, but only the native engine can send messages there: systemd will " +
        "not learn that this process is ready, and a watchdog would end it. Build that engine " +
        "(`npm run build` where cargo is), or use Type=exec and no WatchdogSec= in the unit",
    );
    return SILENT;
  }
  const watchdogMs = watchdogPeriodMs(variables, pid);
  let watchdog: Timer | null = null;
  let isReported = false;

  function tell(...lines: readonly string[]): void {
    const isSent = send?.(socket, lines.join("\n")) === true;
    if (isSent || isReported) return;
    isReported = true;
    err(`systemd cannot be told ${lines[0]}: ${socket} does not take messages`);
  }

  return {
    ready(status) {
      tell("READY=1", statusLine(status));
      if (watchdogMs !== null) watchdog ??= clock.every(watchdogMs, () => tell("WATCHDOG=1"));
    },
    reloading(status) {
      const monotonicUsec = Math.floor(clock.nowNs() / NS_PER_USEC);
      tell("RELOADING=1", `MONOTONIC_USEC=${monotonicUsec}`, statusLine(status));
    },
    stopping: (status) => tell("STOPPING=1", statusLine(status)),
    follow(successor, status) {
      watchdog?.cancel();
      watchdog = null;
      tell(`MAINPID=${successor}`, "READY=1", statusLine(status));
    },
  };
}

/** The real one, of this process. */
export function systemdOfProcess(io: Pick<SystemdDeps, "clock" | "err">): Systemd {
  const { env, pid } = process;
  return createSystemd(env, pid, { clock: io.clock, err: io.err, send: nativeSend(env) });
}

/** The service, whose stop systemd hears of, unless the main process `isReplaced`. */
export function toldToSystemd(
  service: Stoppable,
  systemd: Systemd,
  isReplaced: () => boolean = () => false,
): Stoppable {
  const stopping = (status: string): void => {
    if (!isReplaced()) systemd.stopping(status);
  };
  return {
    drain() {
      stopping("draining: new work is taken until the grace period is over");
      service.drain();
    },
    disableKeepAlive: () => service.disableKeepAlive?.(),
    stop() {
      stopping("finishing pending work");
      return service.stop();
    },
  };
}

function nativeSend({ NOTIFY_SOCKET }: SystemdVariables): SystemdDeps["send"] {
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === "") return null;
  const loaded = loadNative();
  if (loaded.kind !== "loaded") return null;
  const { native } = loaded;
  return (socket, message) => native.systemdNotify(socket, message) === OK;
}

/** Half of the watchdog's time, as `sd_watchdog_enabled(3)` recommends; null: no watchdog. */
function watchdogPeriodMs(variables: SystemdVariables, pid: number): number | null {
  const { WATCHDOG_USEC, WATCHDOG_PID } = variables;
  const usec = Number(WATCHDOG_USEC ?? "");
  const isMine = WATCHDOG_PID === undefined || WATCHDOG_PID === String(pid);
  if (!Number.isSafeInteger(usec) || usec <= 0 || !isMine) return null;
  return Math.max(WATCHDOG_PERIOD_MS_MIN, Math.floor(usec / 2 / USEC_PER_MS));
}

/** One line: a line break would begin another assignment. */
function statusLine(status: string): string {
  return `STATUS=${status.replace(/\s+/g, " ")}`;
}

const USEC_PER_MS = 1_000;
const NS_PER_USEC = NS_PER_MS / USEC_PER_MS;
