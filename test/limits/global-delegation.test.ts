import { expect, it } from "vitest";
import { GlobalDelegation } from "../../src/limits/global-delegation.ts";
import { GLOBAL_LIMITS_MAX } from "../../src/limits/global-state.ts";
import { NO_LIMIT_SLOT } from "../../src/limits/thread-limit-states.ts";

const plan = { name: "S", ratePerSecond: 1, burst: 1, shared: true };

function createScene() {
  const said: string[] = [];
  const delegation = new GlobalDelegation({
    delegate: (account, { name }, limitSlot) => void said.push(`${account} ${name} ${limitSlot}`),
    release: (account) => void said.push(`${account} over`),
  });
  return { delegation, said };
}

it("gives an account one cell until all who hold it have let it go", () => {
  const { delegation, said } = createScene();
  const limitSlot = delegation.delegate("a", plan);
  expect(delegation.delegate("a", { ...plan, name: "T" })).toBe(limitSlot);
  const other = delegation.delegate("b", plan);
  expect(other).not.toBe(limitSlot);
  delegation.release("a");
  expect(delegation.delegate("c", plan)).not.toBe(limitSlot);
  delegation.release("a");
  for (const unknown of ["a", "x"]) delegation.release(unknown);
  expect(delegation.delegate("d", plan)).toBe(limitSlot);
  expect(said).toEqual(["a S 0", "a T 0", "b S 1", "c S 2", "a over", "d S 0"]);
});

it("finds at most the existing slots", () => {
  const { delegation, said } = createScene();
  for (let number = 0; number < GLOBAL_LIMITS_MAX; number += 1)
    delegation.delegate(`${number}`, plan);
  expect(delegation.delegate("one more", plan)).toBe(NO_LIMIT_SLOT);
  expect([delegation.size, said.length]).toEqual([GLOBAL_LIMITS_MAX, GLOBAL_LIMITS_MAX]);
  delegation.release("7");
  expect(delegation.delegate("one more", plan)).toBe(7);
});
