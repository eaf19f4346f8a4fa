import { describe, expect, it } from "vitest";
import { addressList } from "../../src/config/address-list.ts";

const kind = addressList(3);
const read = (raw: unknown) => kind.read(raw, "/");

describe("address list", () => {
  it.each([
    ["one address as a string", "10.0.0.1:0", [{ host: "10.0.0.1", port: 0 }]],
    ["one address in an array", ["[::1]:9"], [{ host: "::1", port: 9 }]],
    [
      "several addresses of both families, in their order",
      ["10.0.0.2:7", "[::]:0", "10.0.0.1:7"],
      [
        { host: "10.0.0.2", port: 7 },
        { host: "::", port: 0 },
        { host: "10.0.0.1", port: 7 },
      ],
    ],
    [
      "port 0 of one address more than once",
      ["10.0.0.1:0", "10.0.0.1:0"],
      [
        { host: "10.0.0.1", port: 0 },
        { host: "10.0.0.1", port: 0 },
      ],
    ],
  ])("accepts %s", (_, raw, value) => {
    expect(read(raw)).toEqual({ kind: "ok", value });
  });

  it.each([
    ["an empty list", [], "1 to 3"],
    [
      "more addresses than the maximum",
      ["1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3", "1.1.1.1:4"],
      "has 4",
    ],
    ["a host name", ["localhost:0"], "valid IP"],
    ["a number", 8009, "8009"],
    ["a port twice", ["1.1.1.1:1", "1.1.1.1:1"], "twice: 1.1.1.1:1"],
    ["an array in an array", [["1.1.1.1:1"]], "an array"],
  ])("rejects %s", (_, raw, message) => {
    expect(read(raw)).toEqual({ kind: "problem", message: expect.stringContaining(message) });
  });

  it("is comma-separated in the environment, and is shown as written", () => {
    for (const text of ["10.0.0.1:0", "10.0.0.1:0, [::1]:9"]) {
      const reading = read(kind.fromText(text));
      expect(reading.kind === "ok" && [kind.show(reading.value)].flat().join(", ")).toBe(text);
    }
  });
});
