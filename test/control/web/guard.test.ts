import { describe, expect, it } from "vitest";
import { type Provenance, rejectCrossSite, returnPath } from "../../../src/control/web/guard.ts";

const SITE = "https://dash.example";
const PAGE: Provenance = {
  method: "POST",
  origin: SITE,
  fetchSite: "same-origin",
  bearer: false,
};

const passes = (change: Partial<Provenance>): boolean => {
  try {
    rejectCrossSite({ ...PAGE, ...change }, SITE);
    return true;
  } catch {
    // The request was rejected.
    return false;
  }
};

describe("the origin of a request", () => {
  it.each<[Partial<Provenance>, boolean]>([
    [{}, true],
    [{ fetchSite: null }, true],
    [{ origin: null }, true],
    [{ origin: null, fetchSite: null }, false],
    [{ fetchSite: "cross-site" }, false],
    [{ fetchSite: "same-site" }, false],
    [{ fetchSite: "none" }, false],
    [{ origin: "null" }, false],
    [{ origin: "https://dash.example.evil" }, false],
    [{ origin: "http://dash.example" }, false],
    [{ origin: "https://dash.example:444", fetchSite: null }, false],
    [{ method: "GET", origin: null, fetchSite: "none" }, true],
    [{ method: "GET", origin: null, fetchSite: null }, true],
    [{ method: "GET", origin: null, fetchSite: "cross-site" }, false],
    [{ method: "DELETE", origin: null, fetchSite: null }, false],
    [{ origin: "https://evil.example", fetchSite: "cross-site", bearer: true }, true],
  ])("%j passes: %s", (change, expected) => {
    expect(passes(change)).toBe(expected);
  });
});

describe("the path that a login returns to", () => {
  it.each([
    ["/keys", "/keys"],
    ["/keys?a=b#c", "/keys?a=b#c"],
    ["/a/../b", "/b"],
    [null, "/"],
    ["", "/"],
    ["keys", "/"],
    ["//evil.example", "/"],
    ["/\\evil.example", "/"],
    ["/.//evil.example", "/"],
    ["/a/..//evil.example", "/"],
    ["https://evil.example", "/"],
    ["/\tx", "/"],
    ["/ x", "/"],
    ["/é", "/"],
  ])("%j leads to %j", (given, path) => {
    expect(returnPath(given)).toBe(path);
  });
});
