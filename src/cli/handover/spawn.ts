/**
 * Starts a successor: the same program with the same arguments, read from the disk anew. The path
 * of the program is the one that this process was started with, so that a symbolic link which was
 * switched meanwhile leads to the new version.
 */

import { spawn } from "node:child_process";
import type { InheritedListener } from "../../edge/clients.ts";
import { HANDOVER_VARIABLE, type HandoverNote } from "./messages.ts";
import type { SuccessorProcess } from "./successor.ts";

/** The listening socket's descriptor in the successor, after standard streams and channel. */
const SOCKET_AT = 4;
/** Variables of systemd that name a process or its descriptors: not the successor's. */
const OWN_VARIABLES = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/** `given`: the note without the listeners. @throws Error when the system starts no process */
export function spawnSuccessor(
  given: Omit<HandoverNote, keyof InheritedListener>,
  { socket, ...listeners }: InheritedListener,
): SuccessorProcess {
  const note: HandoverNote = { ...given, ...listeners, socket: socket === null ? null : SOCKET_AT };
  const { execPath, execArgv, argv } = process;
  const { env: own } = process;
  const env: NodeJS.ProcessEnv = { ...own, [HANDOVER_VARIABLE]: JSON.stringify(note) };
  for (const name of OWN_VARIABLES) delete env[name];
  const child = spawn(execPath, [...execArgv, ...argv.slice(1)], {
    env,
    serialization: "advanced",
    stdio: ["inherit", "inherit", "inherit", "ipc", ...(socket === null ? [] : [socket])],
  });
  const { pid } = child;
  // A failed start is reported later, as an event.
  child.on("error", () => {});
  if (pid === undefined) throw new Error(`${execPath} cannot be started`);
  // This process ends without waiting for its successor.
  child.unref();
  child.channel?.unref();
  return {
    pid,
    send: (message) =>
      new Promise((resolve, reject) => {
        if (!child.connected) reject(new Error("the successor is gone"));
        else child.send(message, (error) => (error === null ? resolve() : reject(error)));
      }),
    kill: (signal) => void child.kill(signal),
    onMessage: (act) => void child.on("message", act),
    onExit(act) {
      child.once("exit", (code, signal) => {
        act(signal === null ? `with exit code ${code}` : `by ${signal}`);
      });
    },
  };
}
