import { describe, expect, it } from "vitest";
import { readCookie, writeCookie } from "../../../src/control/web/cookies.ts";

const VALUE = "abcDEF-_0123456789";

describe("cookies", () => {
  it("are found among others, by their whole name", () => {
    const header = `a=b; x__Host-td-session=${VALUE}x; __Host-td-session=${VALUE}; c=d`;
    expect(readCookie(header, "session")).toBe(VALUE);
    expect(readCookie(header, "login")).toBeNull();
    expect(readCookie(undefined, "session")).toBeNull();
  });

  it("with a value that is none of ours are none", () => {
    for (const value of ["", "short", "a b".repeat(9), `"${VALUE}"`, "x".repeat(129)]) {
      expect(readCookie(`__Host-td-session=${value}`, "session")).toBeNull();
    }
  });

  it("are bound to the host, and removed by an age of zero", () => {
    const attributes = "HttpOnly; Secure; SameSite=Lax";
    expect(writeCookie("login", VALUE, 600_500)).toBe(
      `__Host-td-login=${VALUE}; Path=/; Max-Age=600; ${attributes}`,
    );
    expect(writeCookie("session", null, 1)).toBe(
      `__Host-td-session=; Path=/; Max-Age=0; ${attributes}`,
    );
  });
});
