/** The messages of a request without a valid key: as the documents and the engine have them. */

import { describe, expect, it } from "vitest";
import { KEY_MESSAGES } from "../../src/limits/key-messages.ts";

describe("the messages of a request without a valid key", () => {
  it("insert their values and repeat no key", () => {
    expect(KEY_MESSAGES.keyExpired("then")).toBe("the API key expired at then");
    expect(KEY_MESSAGES.keyNetworkAccount("10.0.0.0/8", "::1")).toBe(
      "the key may be used from 10.0.0.0/8 only, a request with it came from ::1",
    );
    for (const make of Object.values(KEY_MESSAGES)) expect(make.length).toBeLessThanOrEqual(2);
  });

  it("are all different", () => {
    const texts = Object.values(KEY_MESSAGES).map((make: (...values: string[]) => string) =>
      make("a", "b"),
    );
    expect(new Set(texts).size).toBe(texts.length);
  });
});
