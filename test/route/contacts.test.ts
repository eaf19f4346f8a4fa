import { describe, expect, it } from "vitest";
import { CONTACTS_MAX } from "../../src/core/limits.ts";
import { createContacts } from "../../src/route/contacts.ts";
import { RouteCounters } from "../../src/route/counters.ts";

describe("contacts", () => {
  it("return an identity's address, and are replaced completely", () => {
    const contacts = createContacts();
    contacts.replace([{ identity: "A", address: "10.0.0.1:8009" }]);
    expect(contacts.address("A")).toBe("10.0.0.1:8009");
    contacts.replace([{ identity: "B", address: "[2001:db8::1]:8009" }]);
    expect(contacts.address("A")).toBeNull();
    expect(contacts.address("B")).toBe("[2001:db8::1]:8009");
    expect(contacts.size).toBe(1);
  });

  it("omit nodes without an address, and do not count them as invalid", () => {
    const counters = new RouteCounters();
    const contacts = createContacts(counters);
    contacts.replace([{ identity: "A", address: null }]);
    expect(contacts.address("A")).toBeNull();
    expect(counters.contactsInvalid).toBe(0);
  });

  it.each([
    "",
    ":8009",
    "10.0.0.1",
    "10.0.0.1:",
    "10.0.0.1:0",
    "10.0.0.1:08009",
    "10.0.0.1:65536",
    "10.0.0.1:80a",
    "10.0.0.256:8009",
    "0.0.0.0:8009",
    "0.0.0.5:8009",
    "224.0.0.1:8009",
    "255.255.255.255:8009",
    "[fe80::1]:8009",
    "[::]:8009",
    "::1:8009",
    "[::1:8009",
    "[fe80::1%eth0]:8009",
    "leader.example:8009",
  ])("skip and count the invalid address %j", (address) => {
    const counters = new RouteCounters();
    const contacts = createContacts(counters);
    contacts.replace([
      { identity: "A", address },
      { identity: "B", address: "10.0.0.2:65535" },
    ]);
    expect(contacts.size).toBe(1);
    expect(contacts.address("B")).toBe("10.0.0.2:65535");
    expect(counters.contactsInvalid).toBe(1);
  });

  it("are limited to CONTACTS_MAX, and count the overflow", () => {
    const counters = new RouteCounters();
    const contacts = createContacts(counters);
    contacts.replace(
      Array.from({ length: CONTACTS_MAX + 2 }, (_, index) => ({
        identity: `id${index}`,
        address: "10.0.0.1:8009",
      })),
    );
    expect(contacts.size).toBe(CONTACTS_MAX);
    expect(counters.contactsOverflow).toBe(2);
  });

  it("exclude denied and delinquent identities until the list changes", () => {
    const contacts = createContacts(new RouteCounters(), ["A"]);
    contacts.replace([..."ABCDE"].map((identity) => ({ identity, address: "10.0.0.1:1" })));
    contacts.setDelinquent(["B", "Z"]);
    const usable = () => [..."ABCDE"].filter((identity) => contacts.address(identity) !== null);
    expect(usable().join("")).toBe("CDE");
    expect(contacts.delinquentCount).toBe(2);
    contacts.setDelinquent(["C"]);
    expect(usable().join("")).toBe("BDE");
  });

  it("ignore a delinquent list that contains most of the cluster", () => {
    const counters = new RouteCounters();
    const contacts = createContacts(counters);
    contacts.setDelinquent(["A", "B"]);
    contacts.replace([..."ABC"].map((identity) => ({ identity, address: "10.0.0.1:1" })));
    expect(contacts.address("A")).toBe("10.0.0.1:1");
    expect(contacts.delinquentCount).toBe(0);
    expect(counters.delinquentIgnored).toBeGreaterThan(0);
    contacts.replace([..."ABCD"].map((identity) => ({ identity, address: "10.0.0.1:1" })));
    expect(contacts.address("A")).toBeNull();
  });
});
