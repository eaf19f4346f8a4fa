import { expect, it } from "vitest";
import { SharedHolds } from "../../src/limits/global-delegation.ts";
import { SHARED_CELLS_MAX } from "../../src/limits/global-state.ts";
import { NO_CELL } from "../../src/limits/shared-state.ts";

const plan = { name: "S", ratePerSecond: 1, burst: 1, shared: true };

function createScene() {
  const said: string[] = [];
  const holds = new SharedHolds({
    hold: (account, { name }, cell) => void said.push(`${account} ${name} ${cell}`),
    release: (account) => void said.push(`${account} over`),
  });
  return { holds, said };
}

it("gives an account one cell until all who hold it have let it go", () => {
  const { holds, said } = createScene();
  const cell = holds.hold("a", plan);
  expect(holds.hold("a", { ...plan, name: "T" })).toBe(cell);
  const other = holds.hold("b", plan);
  expect(other).not.toBe(cell);
  holds.release("a");
  expect(holds.hold("c", plan)).not.toBe(cell);
  holds.release("a");
  for (const nobody of ["a", "x"]) holds.release(nobody);
  expect(holds.hold("d", plan)).toBe(cell);
  expect(said).toEqual(["a S 0", "a T 0", "b S 1", "c S 2", "a over", "d S 0"]);
});

it("finds no more cells than there are", () => {
  const { holds, said } = createScene();
  for (let number = 0; number < SHARED_CELLS_MAX; number += 1) holds.hold(`${number}`, plan);
  expect(holds.hold("one more", plan)).toBe(NO_CELL);
  expect([holds.size, said.length]).toEqual([SHARED_CELLS_MAX, SHARED_CELLS_MAX]);
  holds.release("7");
  expect(holds.hold("one more", plan)).toBe(7);
});
