import { describe, expect, it } from "vitest";
import { readFraming } from "../../src/http/framing.ts";

type Headers = readonly (readonly [string, string])[];

function readWith(forwardedHeader: string | undefined, headers: Headers, query = "") {
  const source = {
    getQuery: () => query,
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
      isKeyInQuery: false,
      isText: false,
      bodySize: 12,
      rejection: null,
      forwarded: "",
      isLast: false,
      isCloseUnseen: false,
    });
  });

  it("forgets the request before", () => {
    const all = [["content-length", "1"] as const, ["transfer-encoding", "chunked"] as const];
    readWith("x-0a", [["api-x-token", "k"], ["x-0a", "said"], ...all]);
    expect(read(["host", "x"])).toEqual({
      token: "",
      isKeyInQuery: false,
      isText: false,
      bodySize: 0,
      rejection: null,
      forwarded: "",
      isLast: false,
      isCloseUnseen: false,
    });
  });

  it("reads the first of two keys", () => {
    expect(read(["api-x-token", "a"], ["api-x-token", "b"]).token).toBe("a");
  });

  it("takes the key of the first place that has one", () => {
    const query = "a=b&api-key=fourth";
    const places = [
      ["api-x-token", "first"],
      ["x-api-key", "second"],
      ["authorization", "Bearer third"],
    ] as const;
    for (const [index, key] of ["first", "second", "third", "fourth"].entries()) {
      const rest = places.slice(index);
      for (const headers of [rest, rest.toReversed()]) {
        const { token, isKeyInQuery } = readWith("", headers, query);
        expect({ token, isKeyInQuery }).toEqual({ token: key, isKeyInQuery: index === 3 });
      }
      // An empty value is none.
      const empty = places.slice(0, index).map(([name]) => [name, ""] as const);
      expect(readWith("", [...empty, ...rest], query).token).toBe(key);
    }
    expect(read(["x-api-key", "a"], ["x-api-key", "b"]).token).toBe("a");
  });

  it("reads the key of a bearer, and of no other scheme", () => {
    for (const value of ["Bearer k", "bearer k", "BEARER   k"]) {
      expect(read(["authorization", value]).token).toBe("k");
    }
    for (const value of ["k", "Bearer", "Bearer k k", "Bearer\tk", "Basic k", "Bearer k\u00a0"]) {
      expect(read(["authorization", value]).token).toBe("");
    }
    expect(read(["authorization", "Basic a"], ["authorization", "Bearer b"]).token).toBe("b");
  });

  it("reads the key of a query, decoded, and forgets it", () => {
    for (const [query, key] of [
      ["api-key=k", "k"],
      ["?api-key=k", "k"],
      ["x&api-key=&api-key=k%26%3D&api-key=z", "k&="],
      ["api%2Dkey=a+b", "a b"],
      ["API-KEY=k", ""],
      ["api_key=k&apikey=k&key=k", ""],
      ["api-key", ""],
    ] as const) {
      expect(readWith("", [], query)).toMatchObject({ token: key, isKeyInQuery: key !== "" });
    }
    expect(read()).toMatchObject({ token: "", isKeyInQuery: false });
  });

  it("recognizes text by the media type alone", () => {
    for (const value of ["text/plain", "Text/Plain;charset=UTF-8", "text/plain ; a=b"]) {
      expect(read(["content-type", value]).isText).toBe(true);
    }
    for (const value of ["", "text/plainer", "text/plain, a/b", "a text/plain", "text/html"]) {
      expect(read(["content-type", value]).isText).toBe(false);
    }
    expect(read().isText).toBe(false);
  });

  it("reads the forwarded header by its secret name alone, the first of two", () => {
    const [said, other] = [["x-0a", "first"] as const, ["x-0b", "no"] as const];
    const again = ["x-0a", "second"] as const;
    expect(readWith("x-0a", [other, said, again]).forwarded).toBe("first");
    expect(readWith("x-0a", [other]).forwarded).toBe("");
    expect(readWith("", [said]).forwarded).toBe("");
    expect(read(said).forwarded).toBe("");
  });

  it("knows which announcements of a close the library overlooks", () => {
    for (const [values, isUnseen] of [
      [["close"], false],
      [["Close"], false],
      [["close", "keep-alive"], false],
      [["close,"], true],
      [["TE, close"], true],
      [["keep-alive", "close"], true],
    ] as const) {
      const framing = read(...values.map((value) => ["connection", value] as const));
      expect([values, framing.isLast, framing.isCloseUnseen]).toEqual([values, true, isUnseen]);
    }
    expect(read(["connection", "closed"])).toMatchObject({ isLast: false, isCloseUnseen: false });
  });

  it("reads the rest of a relayed request as of any other", () => {
    const rest = [["api-x-token", "k"] as const, ["content-length", "2"] as const];
    const framing = readWith("x-0a", [["x-0a", "said"], ...rest]);
    expect(framing).toEqual({
      token: "k",
      isKeyInQuery: false,
      isText: false,
      bodySize: 2,
      rejection: null,
      forwarded: "said",
      isLast: false,
      isCloseUnseen: false,
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
