/**
 * The regions with their addresses and the round trip from this browser. The nearest is selected
 * until the user selects one.
 */

import { el, fill } from "../lib/dom.js";
import { millis } from "../lib/format.js";
import { roundTrip } from "../lib/round-trip.js";
import { table } from "./table.js";

/**
 * @param {any[]} regions
 * @param {AbortSignal} signal
 * @param {(region: any) => void} onChoose
 */
export function regionTable(regions, signal, onChoose) {
  let byHand = false;
  const rows = regions.map((region, index) => {
    const input = el("input", {
      type: "radio",
      name: "region",
      value: region.name,
      checked: index === 0,
      onchange: () => {
        byHand = true;
        onChoose(region);
      },
    });
    const trip = el("span", { class: "soft" }, "measuring…");
    const best = /** @type {number | null} */ (null);
    return { region, input, trip, best };
  });

  async function measure() {
    // Sequential: concurrent measurements would disturb each other.
    for (const row of rows) {
      row.best = await roundTrip(row.region.url, signal, (ms) => fill(row.trip, millis(ms)));
      if (signal.aborted) return;
      row.trip.className = "";
      if (row.best === null) {
        fill(row.trip, el("span", { class: "badge bad" }, "Not reachable"));
      }
    }
    const [nearest] = rows
      .filter(({ best }) => best !== null)
      .toSorted((a, b) => (a.best ?? 0) - (b.best ?? 0));
    if (nearest === undefined || byHand || nearest.input.checked) return;
    nearest.input.checked = true;
    onChoose(nearest.region);
  }
  void measure();

  return table(
    "Regions",
    [
      {
        title: "Region",
        cell: ({ region, input }) => el("label", { class: "region-choice" }, input, region.name),
      },
      { title: "Address", cell: ({ region }) => el("code", { class: "break" }, region.url) },
      { title: "Round trip", number: true, cell: ({ trip }) => trip },
    ],
    rows,
    { stack: true },
  );
}
