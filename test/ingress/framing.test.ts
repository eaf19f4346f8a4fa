import { describe, expect, it } from "vitest";
import { readFraming } from "../../src/ingress/framing.ts";

const read = (...headers: readonly (readonly [string, string])[]) => ({
  ...readFraming({
    forEach: (visit) => {
      for (const [key, value] of headers) visit(key, value);
    },
  }),
});

describe("readFraming", () => {
  it("takes the key and the size", () => {
    const framing = read(["host", "x"], ["content-length", "12"], ["api-x-token", "k"]);
    expect(framing).toEqual({ token: "k", bodySize: 12, fault: null });
  });

  it("forgets the request before", () => {
    read(["api-x-token", "k"], ["content-length", "1"], ["transfer-encoding", "chunked"]);
    expect(read(["host", "x"])).toEqual({ token: "", bodySize: 0, fault: null });
  });

  it("takes the first of two keys", () => {
    expect(read(["api-x-token", "a"], ["api-x-token", "b"]).token).toBe("a");
  });

  it("finds fault with any Transfer-Encoding, in any order", () => {
    for (const value of ["chunked", "", "identity"]) {
      const te = ["transfer-encoding", value] as const;
      const cl = ["content-length", "1"] as const;
      for (const headers of [
        [te],
        [te, cl],
        [cl, te],
        [cl, ["content-length", "2"], te],
      ] as const) {
        expect(read(...headers).fault?.reason).toBe("length_required");
      }
    }
  });

  it("finds fault with every Content-Length but one plain number", () => {
    for (const value of ["", " ", "+1", "-1", "1.0", "0x1", "1,1", "1 1", "１", "1".repeat(10)]) {
      expect(read(["content-length", value]).fault?.reason).toBe("invalid_request");
    }
    expect(read(["content-length", "1"], ["content-length", "2"]).fault).not.toBeNull();
    expect(read(["content-length", "1"], ["content-length", "1"]).fault).toBeNull();
    expect(read(["content-length", "999999999"])).toMatchObject({ bodySize: 999_999_999 });
  });
});
