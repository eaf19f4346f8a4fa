/** The activity of a key, as the pages show it. */

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { USAGE_SLOT_BOUNDS, USAGE_WIRE_BOUNDS_NS } from "../../src/accounts/usage/usage-shape.ts";
import { useBrowser } from "../support/browser-fixture.ts";
import { open, revealedKey } from "../support/chromium.ts";
import { untilResponse } from "../support/flow.ts";

const fixture = useBrowser();

/** With a key revealed on the Connect page: two transactions that land and one that is rejected. */
async function traffic() {
  const grace = await fixture.page("Grace");
  const key = await revealedKey(grace);
  const submit = () => fixture.site.submit(key);
  await untilResponse("the key at the edge", submit, ({ status }) => status === 200);
  const { signature } = await submit();
  const refused = await fixture.site.submit(key, new Uint8Array(9));
  expect(refused.status).toBe(400);
  return { grace, page: grace.page, signature, message: String(JSON.parse(refused.text).error) };
}

describe("after a key was used, the page", () => {
  it("Transactions shows the receipt as a timeline, the explorer link, the rejection", async () => {
    const { page, signature, message } = await traffic();
    await page.goto(`${fixture.site.url}/transactions?signature=${signature}`);
    const receipt = page.getByRole("region", { name: "Receipt of local" });
    await receipt.getByText(/^Landed in slot \d+/).waitFor();
    const words = /^Timeline with \d+ deliver(?:y|ies)\. Decoded after .*, landed, known after /;
    await receipt.getByRole("img", { name: words }).waitFor();
    const explorer = receipt.getByRole("link", { name: "Explorer" });
    expect(await explorer.getAttribute("href")).toBe(`https://explorer.example/tx/${signature}`);
    expect(await explorer.getAttribute("rel")).toContain("noopener");
    const refusals = page.getByRole("region", { name: "Latest refusals" }).first();
    const row = refusals.getByRole("row", { name: /undecodable/ }).first();
    expect(await row.innerText()).toContain(message);
  });

  it("Keys shows when it was last used", async () => {
    const { grace, page } = await traffic();
    await expect
      .poll(async () => {
        await open(grace, "Overview");
        await open(grace, "Keys");
        const card = page.getByRole("article").filter({ hasText: "First key" });
        await card.waitFor();
        return await card.locator("dl div", { hasText: "Last used" }).innerText();
      })
      .toMatch(/ago|now/);
  });

  it("Plan shows the limits and their use", async () => {
    const grace = await fixture.page("Grace");
    const { page } = grace;
    const { store, owner } = fixture.site;
    const [key] = await store.keys.list(await fixture.site.accountOf("Grace"));
    const counts = { requests: 2400, accepted: 2400, refused: 0, bytes: 0, landed: 0 };
    const histograms = {
      wire: Array.from({ length: USAGE_WIRE_BOUNDS_NS.length + 1 }, () => 0),
      slots: Array.from({ length: USAGE_SLOT_BOUNDS.length + 1 }, () => 0),
    };
    const minute = Date.now() - 60_000;
    const row = { key: key?.id, minute, ...counts, expired: 0, dropped: 0, ...histograms };
    for (const edge of ["one", "two"]) {
      await owner.query("select touchdown.edge_write_usage($1, 1, $2, 'local', $3)", [
        randomUUID(),
        edge,
        JSON.stringify([{ ...row, reasons: [] }]),
      ]);
    }
    await open(grace, "Plan");
    const recent = page.getByRole("region", { name: "In the last two whole minutes" });
    expect(await recent.innerText()).toMatch(/4,8\d\d\s+requests/);
    const rate = await page.getByRole("region", { name: "Requests a second" }).innerText();
    expect(rate).toMatch(/\b50\s+at each edge/);
    const meter = page.getByRole("meter", { name: /two minutes at the busiest edge$/ });
    expect(await meter.getAttribute("aria-valuemax")).toBe("50");
    expect(await meter.getAttribute("aria-valuenow")).toBe("20");
    expect(await page.getByRole("region", { name: "Burst" }).innerText()).toMatch(/\b100\b/);
  });

  it("Audit shows the actions, actors and addresses", async () => {
    const { grace, page } = await traffic();
    await open(grace, "Audit");
    const row = page.getByRole("row", { name: /Key revealed/ }).first();
    const text = await row.innerText();
    for (const part of ["First key", "You", "127.0.0.1", "Chrome"]) expect(text).toContain(part);
    expect(text).toMatch(/\d{4}, \d\d:\d\d:\d\d/);
  });
});
