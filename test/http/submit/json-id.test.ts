import { describe, expect, it } from "vitest";
import { idText } from "../../../src/http/submit/json-id.ts";
import { fc } from "../../support/properties.ts";

describe("idText", () => {
  it("is null where there is no id that can be echoed", () => {
    for (const text of ["{}", '{"id":true}', '{"id":[]}', '{"id":{}}', '{"x":{"id":1}}']) {
      expect(idText(JSON.parse(text), text, -1)).toBeNull();
    }
  });

  it("does not take what is inherited", () => {
    const call = Object.create({ id: 1 });
    expect(idText(call, "{}", -1)).toBeNull();
  });

  it("is the number's own text, wherever the call stands", () => {
    const number = fc.oneof(
      fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }).map(String),
      fc.constantFrom("1e999", "-0.1e-7", "12345678901234567.25", "1E5000"),
    );
    const noise = fc.constantFrom(
      '{"id":[1,{"id":2}],"x":"\\",{"}',
      '{"\\\\":"]"}',
      "[1,[2,3],{}]",
      '"id"',
      "null",
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(number, noise), { minLength: 1, maxLength: 6 }), (parts) => {
        const calls = parts.map(
          ([id, extra], i) => `{ "a" : ${extra} ,\n"${i % 2 ? "id" : "\\u0069d"}"\t: ${id} }`,
        );
        const batch = `[${calls.join(" ,")}]`;
        for (const [index, call] of JSON.parse(batch).entries()) {
          expect(idText(call, batch, index)).toBe(parts[index]?.[0]);
        }
        const [single = ""] = calls;
        expect(idText(JSON.parse(single), single, -1)).toBe(parts[0]?.[0]);
      }),
    );
  });
});
