/** The list of the latest transactions in a browser: refresh, filters, and links to receipts. */

import type { Route } from "playwright-core";
import { describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, open, revealedKey, type Visitor } from "../support/chromium.ts";
import { lookAt, settled } from "../support/look.ts";

const fixture = useBrowser();

const listOf = ({ page }: Visitor) => page.getByRole("table", { name: "Latest transactions" });
const rowsOf = (visitor: Visitor) => listOf(visitor).locator("tbody tr");

/** The link of a signature in the list. */
function linkOf({ page }: Visitor, signature: string) {
  const name = `${signature.slice(0, 8)}…${signature.slice(-8)}`;
  return page.getByRole("link", { name });
}

async function choose({ page }: Visitor, name: string): Promise<void> {
  await page.getByRole("radio", { name, exact: true }).check();
}

describe("the latest transactions", () => {
  it("appear automatically with their state, and link to the receipt", async () => {
    const grace = await fixture.page("Grace");
    const key = await revealedKey(grace);
    await open(grace, "Transactions");
    await settled(grace.page);
    const { status, signature } = await fixture.site.submit(key);
    expect(status).toBe(200);
    const row = rowsOf(grace).filter({ has: linkOf(grace, signature) });
    await row.getByText("Landed", { exact: true }).waitFor();
    await linkOf(grace, signature).click();
    await grace.page.getByText(/^Landed in slot/).waitFor();
    expect(new URL(grace.page.url()).searchParams.get("signature")).toBe(signature);
  });

  it("are polled without extending the session of an absent user", async () => {
    const { page } = await fixture.page("Grace");
    const asked = page.waitForRequest(
      (request) =>
        request.url().includes("/api/v1/transactions?") &&
        request.headers()["x-unattended"] === "1",
    );
    await page.goto(`${fixture.site.url}/transactions`);
    expect((await (await asked).response())?.status()).toBe(200);
  });

  it("stay while a poll gets no response, and are polled again", async () => {
    const grace = await fixture.page("Grace");
    const key = await revealedKey(grace);
    const { signature: first } = await fixture.site.submit(key);
    await open(grace, "Transactions");
    await linkOf(grace, first).waitFor();
    await grace.page.route("**/api/v1/transactions?*", (route) => route.abort());
    const note = grace.page.getByText("The dashboard's server cannot be reached");
    await note.waitFor();
    expect(await linkOf(grace, first).count()).toBe(1);
    await lookAt(grace.page, "transactions-unpolled");
    await grace.page.unroute("**/api/v1/transactions?*");
    const { signature: second } = await fixture.site.submit(key);
    await linkOf(grace, second).waitFor();
    expect(await note.count()).toBe(0);
    allowComplaints(grace, /ERR_FAILED/);
  });

  it("can be filtered by state, which the URL keeps", async () => {
    const grace = await fixture.page("Grace");
    const key = await revealedKey(grace);
    const { signature } = await fixture.site.submit(key);
    await open(grace, "Transactions");
    await linkOf(grace, signature).waitFor();
    await choose(grace, "Not landed");
    await grace.page.getByText("None of the transactions that are kept.").waitFor();
    expect(grace.page.url()).toMatch(/\/transactions\?show=not-landed$/);
    await lookAt(grace.page, "transactions-not-landed");
    await grace.page.reload();
    await grace.page.getByText("None of the transactions that are kept.").waitFor();
    await choose(grace, "Landed");
    await linkOf(grace, signature).waitFor();
    await choose(grace, "All");
    await linkOf(grace, signature).waitFor();
    expect(grace.page.url()).toMatch(/\/transactions$/);
  });

  it("are twenty, newest first, and more on request", async () => {
    const grace = await fixture.page("Grace");
    const key = await revealedKey(grace);
    const signatures: string[] = [];
    for (let count = 0; count < 25; count += 1) {
      signatures.push((await fixture.site.submit(key)).signature);
    }
    await open(grace, "Transactions");
    await linkOf(grace, signatures.at(-1) ?? "").waitFor();
    expect(await rowsOf(grace).count()).toBe(20);
    expect(await linkOf(grace, signatures[0] ?? "").count()).toBe(0);
    await grace.page.getByRole("button", { name: "Show up to 100" }).click();
    await linkOf(grace, signatures[0] ?? "").waitFor();
    const shown = await rowsOf(grace)
      .locator("a")
      .evaluateAll((links) => links.map((link) => link.getAttribute("title")));
    expect(shown.slice(0, 25)).toEqual(signatures.toReversed());
  });

  it("are hidden from other accounts, and an unknown one is reported as unknown", async () => {
    const grace = await fixture.page("Grace");
    const { signature } = await fixture.site.submit(await revealedKey(grace));
    const ada = await fixture.page("Ada");
    await open(ada, "Transactions");
    await ada.page.getByText("Nothing was sent lately").waitFor();
    await lookAt(ada.page, "transactions-none");
    await ada.page.getByRole("textbox", { name: "Signature" }).fill(signature);
    await ada.page.getByRole("button", { name: "Look up" }).click();
    await ada.page.getByText("No region knows this transaction").waitFor();
    await lookAt(ada.page, "transactions-unknown");
    // The browser reports the response, and nothing else.
    allowComplaints(ada, /404/);
  });
});

describe("a region that does not respond", () => {
  it("is named, and the list is not reported as empty", async () => {
    const { page } = await fixture.page("Ada");
    for (const list of ["transactions", "refusals"]) {
      await page.route(`**/api/v1/${list}?*`, answerWithout(list));
      await page.route(`**/api/v1/${list}`, answerWithout(list));
    }
    await page.goto(`${fixture.site.url}/transactions`);
    await page
      .getByText("No response from tokyo and oslo: what they know is missing")
      .nth(1)
      .waitFor();
    expect(await page.getByText("None in the regions that responded.").count()).toBe(2);
    expect(await page.getByText("Nothing was").count()).toBe(0);
    await lookAt(page, "transactions-unreachable");
  });
});

/** The API's response with two unreachable regions. */
function answerWithout(list: string) {
  const body = JSON.stringify({ [list]: [], more: false, unreachable: ["tokyo", "oslo"] });
  return (route: Route) => route.fulfill({ contentType: "application/json", body });
}
