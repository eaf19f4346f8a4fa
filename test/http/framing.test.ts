import { describe, expect, it } from "vitest";
import { readFraming } from "../../src/http/framing.ts";

type Headers = readonly (readonly [string, string])[];

function readWith(forwardedHeader: string | undefined, headers: Headers) {
  const source = {
    forEach(visit: (key: string, value: string) => void) {
      for (const [key, value] of headers) visit(key, value);
    },
  };
  return { ...readFraming(source, forwardedHeader) };
}

const read = (...headers: Headers) => readWith(undefined, headers);

describe("readFraming", () => {
  it("reads the key and the size", () => {
    const framing = read(["host", "x"], ["content-length", "12"], ["api-x-token", "k"]);
    expect(framing).toEqual({
      token: "k",
      bodySize: 12,
      rejection: null,
      forwarded: "",
      isLast: false,
    });
  });

  it("forgets the request before", () => {
    const all = [["content-length", "1"] as const, ["transfer-encoding", "chunked"] as const];
    readWith("x-0a", [["api-x-token", "k"], ["x-0a", "said"], ...all]);
    expect(read(["host", "x"])).toEqual({
      token: "",
      bodySize: 0,
      rejection: null,
      forwarded: "",
      isLast: false,
    });
  });

  it("reads the first of two keys", () => {
    expect(read(["api-x-token", "a"], ["api-x-token", "b"]).token).toBe("a");
  });

  it("reads the forwarded header by its secret name alone, the first of two", () => {
    const [said, other] = [["x-0a", "first"] as const, ["x-0b", "no"] as const];
    const again = ["x-0a", "second"] as const;
    expect(readWith("x-0a", [other, said, again]).forwarded).toBe("first");
    expect(readWith("x-0a", [other]).forwarded).toBe("");
    expect(readWith("", [said]).forwarded).toBe("");
    expect(read(said).forwarded).toBe("");
  });

  it("reads the rest of a relayed request as of any other", () => {
    const rest = [["api-x-token", "k"] as const, ["content-length", "2"] as const];
    const framing = readWith("x-0a", [["x-0a", "said"], ...rest]);
    expect(framing).toEqual({
      token: "k",
      bodySize: 2,
      rejection: null,
      forwarded: "said",
      isLast: false,
    });
    const faulty = readWith("x-0a", [["x-0a", "said"], ...rest, ["content-length", "3"]]);
    expect(faulty.rejection?.reason).toBe("invalid_request");
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
        expect(read(...headers).rejection?.reason).toBe("length_required");
      }
    }
  });

  it("finds fault with every Content-Length but one plain number", () => {
    for (const value of ["", " ", "+1", "-1", "1.0", "0x1", "1,1", "1 1", "１", "1".repeat(10)]) {
      expect(read(["content-length", value]).rejection?.reason).toBe("invalid_request");
    }
    expect(read(["content-length", "1"], ["content-length", "2"]).rejection).not.toBeNull();
    expect(read(["content-length", "1"], ["content-length", "1"]).rejection).toBeNull();
    expect(read(["content-length", "999999999"])).toMatchObject({ bodySize: 999_999_999 });
  });
});
