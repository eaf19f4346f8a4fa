/**
 * The nodes' addresses as changes since the last time, because a few of 5,000 change in a minute.
 *
 * The cluster thread compares what it read with what it sent; the main thread applies the changes
 * to its copy. Nodes without an address are not sent, because none of them receives transactions.
 */

import { CONTACTS_MAX } from "../../core/limits.ts";
import type { Contact } from "../ports.ts";
import { LINE_END, linesOf, lineText } from "./text-lines.ts";

export interface ContactsMessage {
  readonly kind: "contacts";
  /** `Clock.nowNs` of when they were read. */
  readonly atNs: number;
  /** Whether the thread sent none before: the copy starts empty. */
  readonly isFirst: boolean;
  /** New and changed contacts, one a line: identity, address and version, the last may be empty. */
  readonly changed: string;
  /** Identities that are gone, one a line. */
  readonly removed: string;
}

const FIELD_END = "\t";
/** An address that the router counts as invalid. */
const INVALID = "invalid";

/** The sending side. */
export class ContactChanges {
  /** By identity, the line as it was sent. */
  #sent: ReadonlyMap<string, string> = new Map();
  #isFirst = true;

  /** The changes to this complete list; the list is cut off at `CONTACTS_MAX`. */
  next(contacts: readonly Contact[], atNs: number): ContactsMessage {
    const lines = new Map<string, string>();
    const changed: string[] = [];
    for (const { identity, address, version } of contacts) {
      if (address === null || lineText(identity) === null) continue;
      if (lines.size >= CONTACTS_MAX && !lines.has(identity)) continue;
      const fields = [identity, lineText(address) ?? INVALID, lineText(version ?? "") ?? ""];
      lines.set(identity, fields.join(FIELD_END));
    }
    for (const [identity, line] of lines) {
      if (this.#sent.get(identity) !== line) changed.push(line);
    }
    const removed = [...this.#sent.keys()].filter((identity) => !lines.has(identity));
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.#sent = lines;
    return {
      kind: "contacts",
      atNs,
      isFirst,
      changed: changed.join(LINE_END),
      removed: removed.join(LINE_END),
    };
  }
}

/** Applies a message to the receiving side's copy. Returns whether that changed it. */
export function applyContactChanges(
  copy: Map<string, Contact>,
  { isFirst, changed, removed }: ContactsMessage,
): boolean {
  if (isFirst) copy.clear();
  for (const identity of linesOf(removed)) copy.delete(identity);
  for (const line of linesOf(changed)) {
    const [identity = "", address = "", version = ""] = line.split(FIELD_END);
    copy.set(identity, { identity, address, version: version === "" ? null : version });
  }
  return isFirst || changed !== "" || removed !== "";
}
