/**
 * Records which process owns something on the disk: its number and start time, as text in a file
 * next to it. A number alone is not enough: after a kill, and in every new container, another
 * process soon has it.
 *
 * Note: process numbers are valid only within one PID namespace. In a folder shared with another
 * container, that container's living process is not visible from here; so destructive code must use
 * `hasEnded`, which returns false for an identity of another namespace.
 */

import { readFileSync, readlinkSync } from "node:fs";
import { codeOf } from "../core/errors.ts";

export interface ProcessIdentity {
  readonly pid: number;
  /** In ticks since boot; null if unknown. */
  readonly start: string | null;
  /** The kernel's name of the PID namespace of the number; null if unknown. */
  readonly namespace: string | null;
}

/** This process's identity as text. */
export function ownIdentity(): string {
  const { pid } = process;
  return JSON.stringify({
    pid,
    start: startOf(pid),
    namespace: ownNamespace(),
  } satisfies ProcessIdentity);
}

/** Null for an incomplete text: its process was killed while it wrote. */
export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return null;
    const { pid, start, namespace }: { pid?: unknown; start?: unknown; namespace?: unknown } =
      value;
    if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid < 1) return null;
    return { pid, start: textOrNull(start), namespace: textOrNull(namespace) };
  } catch {
    // Truncated.
    return null;
  }
}

/** Whether the process of the identity is alive, as far as visible from here. */
export function isAlive({ pid, start }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM on a signal means that the process exists.
    if (codeOf(error) !== "EPERM") return false;
  }
  return startOf(pid) === start;
}

/** Whether the process has ended for certain. */
export function hasEnded(identity: ProcessIdentity): boolean {
  return identity.namespace === ownNamespace() && !isAlive(identity);
}

/** Whether the process has a handler for the signal of this number; false if it cannot be read. */
export function catchesSignal(pid: number, signal: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const [, caught = "0"] = /^SigCgt:\t([0-9a-f]+)$/m.exec(status) ?? [];
    return ((BigInt(`0x${caught}`) >> BigInt(signal - 1)) & 1n) === 1n;
  } catch {
    // Not Linux, or no such process.
    return false;
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** A process's start time; null if it ended or the time is unknown. */
function startOf(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? null : (fields[START_FIELD] ?? null);
  } catch {
    // Not Linux, or no such process.
    return null;
  }
}

function ownNamespace(): string | null {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    // Not Linux.
    return null;
  }
}

/** Field 22 of `/proc/PID/stat`, counted from the state, which is field 3; proc(5), 2026-11. */
const START_FIELD = 19;
