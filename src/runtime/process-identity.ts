/**
 * Whose something on the disk is: a process's number and when it was started, as text in a file
 * beside it. A number alone says little: after a kill, and in every new container, it is soon
 * another process's.
 *
 * The surprise: numbers mean something within one space of them only. Where a folder is shared with
 * another container, that one's living process cannot be seen from here; so what would destroy asks
 * `hasEnded`, which says no for a mark of another space.
 */

import { readFileSync, readlinkSync } from "node:fs";
import { codeOf } from "../core/errors.ts";

export interface ProcessIdentity {
  readonly pid: number;
  /** In ticks since boot; null where that cannot be told. */
  readonly start: string | null;
  /** The kernel's name for the space that the number is of; null where it cannot be told. */
  readonly namespace: string | null;
}

/** This process's mark as text. */
export function ownIdentity(): string {
  const { pid } = process;
  return JSON.stringify({
    pid,
    start: startOf(pid),
    namespace: ownNamespace(),
  } satisfies ProcessIdentity);
}

/** Null for a text that was not written whole: its process was killed while it wrote. */
export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return null;
    const { pid, start, namespace }: { pid?: unknown; start?: unknown; namespace?: unknown } =
      value;
    if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid < 1) return null;
    return { pid, start: textOrNull(start), namespace: textOrNull(namespace) };
  } catch {
    // Cut off in the middle.
    return null;
  }
}

/** Whether the process that made the mark is there, as far as can be seen from here. */
export function isAlive({ pid, start }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Not allowed to signal it means that it is there.
    if (codeOf(error) !== "EPERM") return false;
  }
  return startOf(pid) === start;
}

/** Whether it has ended for certain. */
export function hasEnded(identity: ProcessIdentity): boolean {
  return identity.namespace === ownNamespace() && !isAlive(identity);
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** When a process was started; null where that cannot be told, or it ended. */
function startOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : (fields[START_FIELD] ?? null);
  } catch {
    // Another system, or no such process.
    return null;
  }
}

function ownNamespace(): string | null {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    // Another system.
    return null;
  }
}

/** Field 22 of `/proc/PID/stat`, counted from the state, which is field 3; proc(5), 2026-11. */
const START_FIELD = 19;
