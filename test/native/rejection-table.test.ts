/** The native engine's generated table of rejections, against the tables that it is made from. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DECODE_ERROR, rejectionOf } from "../../src/core/decode-errors.ts";
import { rateLimitMessage } from "../../src/core/errors.ts";
import { RPC_MESSAGES } from "../../src/http/submit/json-rpc-messages.ts";
import { KEY_MESSAGES } from "../../src/limits/key-messages.ts";
import {
  decodeTemplates,
  decodeValues,
  RUST_TABLE,
  rendered,
  rustRejections,
  templateOf,
  templateOfCall,
  templateText,
} from "../support/rust-rejections.ts";
import { ROOT } from "../support/source-tree.ts";

const NUMBERS = [0, 1, 2, 9, 10, 63, 127, 128, 255, 256, 1_232, 65_535, 2 ** 31, 2 ** 53, 2 ** 63];

describe("the native engine's table of rejections", () => {
  it("is the one that `npm run docs` writes", () => {
    expect(readFileSync(join(ROOT, RUST_TABLE), "utf8")).toBe(rustRejections());
  });

  it.each(Object.entries(DECODE_ERROR))("has the message of %s for all values", (_, errorCode) => {
    const [usual, zero] = decodeTemplates(errorCode);
    for (const found of NUMBERS) {
      for (const needed of NUMBERS) {
        const { message } = rejectionOf({ kind: "rejected", errorCode, found, needed });
        const template = found === 0 ? zero : usual;
        expect(rendered(template, decodeValues(found, needed))).toBe(message);
      }
    }
  });

  it.each(Object.entries({ ...KEY_MESSAGES, ...RPC_MESSAGES, rateLimitMessage }))(
    "has the message %s for all values",
    (_, make) => {
      const values = ["a", "", '"b"', "<0>"];
      // Every one takes texts.
      const message = (make as (...values: string[]) => string)(...values);
      expect(rendered(templateOfCall(make), values)).toBe(message);
    },
  );

  it("is cut at each value, also at the ends and side by side", () => {
    expect(templateOf("12 of 345 and 12", ["12", "345"])).toEqual([0, " of ", 1, " and ", 0]);
    expect(templateOf("no value", ["12", "345"])).toEqual(["no value"]);
    expect(templateOf("34512", ["12", "345"])).toEqual([1, 0]);
  });

  it("names its values by number, and refuses a text that looks like one", () => {
    expect(templateText([1, ' of {"a":', 0, "}"])).toBe('{1} of {"a":{0}}');
    expect(() => templateText(["{1} of ", 0])).toThrow(RangeError);
  });
});
