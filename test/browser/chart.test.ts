/** The component that draws plots, alone on the dashboard's first page in a browser. */

import { expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";

const fixture = useBrowser();

/** The pictures of plots, each of which showed these lists of values one after the other. */
function pictures(plots: readonly (readonly (readonly (number | null)[])[])[]): string {
  return `(async () => {
    const { chart } = await import("/components/chart.js");
    const pictures = [];
    for (const lists of ${JSON.stringify(plots)}) {
      const { figure, show } = chart("Plot", new AbortController().signal);
      document.querySelector("main").replaceChildren(figure);
      for (const values of lists) {
        const at = values.map((_, index) => 1_800_000_000 + 60 * index);
        show(at, [{ label: "p50", colour: 1, values, format: String }], "");
        while (figure.querySelector("canvas") === null) {
          await new Promise((resolve) => requestAnimationFrame(resolve));
        }
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
      pictures.push(figure.querySelector("canvas").toDataURL());
    }
    return pictures;
  })()`;
}

it("a plot with new values looks like one that had them from the beginning", async () => {
  const { page } = await fixture.visitor();
  await page.goto(fixture.site.url);
  await page.getByRole("button", { name: "Log in" }).waitFor();
  const whole = Array.from({ length: 60 }, () => 100);
  const isolated = whole.map((value, index) => (index % 10 === 5 ? value : null));
  const none = whole.map(() => null);
  const plots = [[isolated], [whole, isolated], [whole], [isolated, whole], [none]];
  const [points, pointsLater, line, lineLater, nothing] = await page.evaluate<string[]>(
    pictures(plots),
  );
  expect(pointsLater).toBe(points);
  expect(lineLater).toBe(line);
  expect(new Set([points, line, nothing]).size).toBe(3);
});
