import { describe, expect, it } from "vitest";
import { createKeyTable, type KeyRow } from "../../src/accounts/key-table.ts";
import { tokenSha256 } from "../../src/accounts/keys-file.ts";

const plan = { name: "P", ratePerSecond: 1, burst: 1 };
const row = (token: string, account = token): KeyRow => ({
  sha256: tokenSha256(token),
  account,
  plan,
  label: null,
});

describe("the key table", () => {
  it("finds a key by the digest and nothing else", () => {
    const table = createKeyTable([row("a"), row("b")]);
    expect(table.lookup(tokenSha256("a"))?.account).toBe("a");
    expect(table.lookup(tokenSha256("c"))).toBeNull();
    expect(table.counters.keys).toBe(2);
  });

  it("compares the whole digest", () => {
    const near = row("a");
    const twin = Buffer.from(near.sha256);
    twin.writeUInt8(twin.readUInt8(31) ^ 1, 31);
    const table = createKeyTable([near, { ...near, sha256: twin, account: "twin" }]);
    expect(table.lookup(near.sha256)?.account).toBe("a");
    expect(table.lookup(twin)?.account).toBe("twin");
    const third = Buffer.from(twin);
    third.writeUInt8(third.readUInt8(20) ^ 1, 20);
    expect(table.lookup(third)).toBeNull();
  });

  it("is replaced as a whole, and keeps the old keys when the new ones cannot be read", () => {
    const table = createKeyTable([row("a")]);
    table.replace([row("b")]);
    expect(table.lookup(tokenSha256("a"))).toBeNull();
    expect(table.lookup(tokenSha256("b"))?.account).toBe("b");
    expect(() =>
      table.replace(
        (function* () {
          yield row("c");
          throw new Error("broken");
        })(),
      ),
    ).toThrow("broken");
    expect(table.lookup(tokenSha256("b"))?.account).toBe("b");
    expect(table.counters).toMatchObject({ keys: 1, replacements: 1 });
  });
});
