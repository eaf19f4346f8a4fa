import { describe, expect, it } from "vitest";
import type { Contact } from "../../../src/cluster/ports.ts";
import {
  applyContactChanges,
  ContactChanges,
} from "../../../src/cluster/thread/contact-changes.ts";
import { CONTACTS_MAX } from "../../../src/core/limits.ts";
import { fc } from "../../support/properties.ts";

const node = (
  identity: string,
  address: string | null,
  version: string | null = null,
): Contact => ({
  identity,
  address,
  version,
});

describe("contact changes", () => {
  it("are those of a few nodes, and make the copy equal to the list", () => {
    const changes = new ContactChanges();
    const copy = new Map<string, Contact>();
    const first = [node("a", "1.1.1.1:1", "4.0"), node("b", "2.2.2.2:2"), node("c", null)];
    const message = changes.next(first, 5);
    expect(message).toMatchObject({ kind: "contacts", atNs: 5, isFirst: true, removed: "" });
    expect(applyContactChanges(copy, message)).toBe(true);
    expect([...copy.values()]).toEqual(first.slice(0, 2));

    expect(applyContactChanges(copy, changes.next(first, 6))).toBe(false);
    const next = changes.next([node("b", "3.3.3.3:3"), node("d", "4.4.4.4:4")], 7);
    expect(next).toMatchObject({ isFirst: false, removed: "a" });
    expect(applyContactChanges(copy, next)).toBe(true);
    expect([...copy.values()]).toEqual([node("b", "3.3.3.3:3"), node("d", "4.4.4.4:4")]);
  });

  it("of a new thread replace the whole copy", () => {
    const copy = new Map([["old", node("old", "1.1.1.1:1")]]);
    applyContactChanges(copy, new ContactChanges().next([node("a", "2.2.2.2:2")], 0));
    expect([...copy.keys()]).toEqual(["a"]);
  });

  it("have a bounded number of nodes, and texts of a bounded length", () => {
    const many = Array.from({ length: CONTACTS_MAX + 9 }, (_, index) =>
      node(`${index}`, "1.1.1.1:1"),
    );
    const copy = new Map<string, Contact>();
    applyContactChanges(copy, new ContactChanges().next(many, 0));
    expect(copy.size).toBe(CONTACTS_MAX);
    const long = "x".repeat(65);
    const odd = [
      node(long, "1.1.1.1:1"),
      node("a", long),
      node("b", "1\t2\n3"),
      node("c", "1", long),
    ];
    applyContactChanges(copy, new ContactChanges().next(odd, 0));
    expect([...copy.values()]).toEqual([
      node("a", "invalid"),
      node("b", "invalid"),
      node("c", "1"),
    ]);
  });

  it("make the copy equal to any sequence of lists", () => {
    const text = fc.constantFrom("1.1.1.1:1", "2.2.2.2:2", "no address");
    const contact = fc.record({
      identity: fc.constantFrom("a", "b", "c", "d"),
      address: text,
      version: fc.constantFrom(null, "4.0", "4.1"),
    });
    const list = fc.uniqueArray(contact, { selector: ({ identity }) => identity });
    fc.assert(
      fc.property(fc.array(list), (lists) => {
        const changes = new ContactChanges();
        const copy = new Map<string, Contact>();
        for (const each of lists) {
          applyContactChanges(copy, changes.next(each, 0));
          expect([...copy.values()].sort(byIdentity)).toEqual([...each].sort(byIdentity));
        }
      }),
    );
  });
});

const byIdentity = (a: Contact, b: Contact): number => (a.identity < b.identity ? -1 : 1);
