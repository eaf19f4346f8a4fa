/**
 * Starts a successor: the same program with the same arguments, read from the disk anew. The path
 * of the program is the one that this process was started with, so that a symbolic link which was
 * switched meanwhile leads to the new version.
 *
 * Its parent is a shell, which passes its exit code on, and which `leave` ends. The system's first
 * process is its parent then: systemd neither waits for the end of a main process that is not its
 * child when it stops a service, nor learns of that end. (`unit_kill_context` and
 * `service_set_main_pidref` of systemd 257.)
 */

import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { InheritedListener } from "../../edge/inherited-listener.ts";
import { HANDOVER_VARIABLE, type HandoverNote } from "./messages.ts";
import type { SuccessorProcess } from "./successor.ts";

/** The shell's descriptor for the successor's number, after standard streams and channel. */
const PID_AT = 4;
/** The listening socket's descriptor in the successor. */
const SOCKET_AT = 5;
/**
 * `systemctl kill` sends a signal to all processes of a service: one that is for the edge must not
 * end the shell, whose end counts as the successor's. Node resets what it inherits to the default.
 */
const IGNORE = 'trap "" HUP USR2';
const START = `"$0" "$@" ${PID_AT}>&- & echo $! >&${PID_AT}; exec ${PID_AT}>&-; wait $!`;
const SHELL = `${IGNORE}; ${START}`;
/** A shell's exit code for a command that a signal ended is this and the signal's number. */
const SIGNAL_CODES_AFTER = 128;
/** Variables of systemd that name a process or its descriptors: not the successor's. */
const OWN_VARIABLES = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/** `given`: the note without the listeners. @throws Error when the system starts no process */
export async function spawnSuccessor(
  given: Omit<HandoverNote, keyof InheritedListener>,
  { socket, ...listeners }: InheritedListener,
): Promise<SuccessorProcess> {
  const note: HandoverNote = { ...given, ...listeners, socket: socket === null ? null : SOCKET_AT };
  const { execPath, execArgv, argv, env: own } = process;
  const env: NodeJS.ProcessEnv = { ...own, [HANDOVER_VARIABLE]: JSON.stringify(note) };
  for (const name of OWN_VARIABLES) delete env[name];
  const shell = spawn("/bin/sh", ["-c", SHELL, execPath, ...execArgv, ...argv.slice(1)], {
    env,
    serialization: "advanced",
    stdio: ["inherit", "inherit", "inherit", "ipc", "pipe", socket ?? "ignore"],
  });
  const exited = new Promise<string>((resolve) => {
    shell.once("exit", (code, signal) => resolve(describeExit(code, signal)));
  });
  const pid = await pidFrom(shell);
  // This process ends without waiting for its successor.
  shell.unref();
  shell.channel?.unref();
  return {
    pid,
    send: (message) =>
      new Promise((resolve, reject) => {
        if (!shell.connected) reject(new Error("the successor is gone"));
        else shell.send(message, (error) => (error === null ? resolve() : reject(error)));
      }),
    kill(signal) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended.
      }
    },
    onMessage: (act) => void shell.on("message", act),
    onExit: (act) => void exited.then(act),
    async leave() {
      shell.kill("SIGKILL");
      await exited;
    },
  };
}

/** The process number that the shell writes. @throws Error when it starts no process */
async function pidFrom(shell: ChildProcess): Promise<number> {
  const failed = new Promise<never>((_, reject) => shell.on("error", reject));
  if (shell.pid === undefined) return await failed;
  const pid = Number(await Promise.race([failed, text(shell.stdio[PID_AT] as Readable)]));
  if (!(pid > 0)) throw new Error("the shell started no process");
  return pid;
}

function describeExit(code: number | null, signal: NodeJS.Signals | null): string {
  const number = (code ?? 0) - SIGNAL_CODES_AFTER;
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  const name = signal ?? found?.[0];
  return name === undefined ? `with exit code ${code}` : `by ${name}`;
}
