/**
 * An operator's actions on another account in a browser, and their effect on that account's pages.
 */

import { describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, open, revealedKey, type Visitor } from "../support/chromium.ts";
import { lookAt } from "../support/look.ts";
import { insertPlan } from "../support/plans.ts";

const fixture = useBrowser();

/** Ada's Operator page, filtered to Grace's account. */
async function gracesRow(ada: Visitor) {
  await open(ada, "Operator");
  await ada.page.getByLabel("Name, login or id").fill("grace");
  await ada.page.getByRole("button", { name: "Search" }).click();
  await ada.page.getByRole("row", { name: /Ada Operator/ }).waitFor({ state: "detached" });
  return ada.page.getByRole("row", { name: /Grace User/ });
}

describe("an operator", () => {
  it("changes an account's plan on its edges and pages", async () => {
    const wide = { name: "Wide", ratePerSecond: 500, burst: 1000, shared: false, rights: {} };
    await insertPlan(fixture.site.owner, wide);
    const grace = await fixture.page("Grace");
    const ada = await fixture.page("Ada");
    const row = await gracesRow(ada);
    await row.getByText("Beta", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Change the plan of Grace User" }).click();
    const dialog = ada.page.getByRole("dialog");
    await dialog.getByLabel("Plan").selectOption("Wide");
    await lookAt(ada.page, "dialog-change-plan");
    await dialog.getByRole("button", { name: "Change the plan" }).click();
    await row.getByText("Wide", { exact: true }).waitFor();
    const plans = ada.page.getByRole("table", { name: "Plans" });
    await plans.getByRole("row", { name: "Wide 1 500 1,000" }).waitFor();
    await lookAt(ada.page, "operator-search");
    await open(grace, "Plan");
    await grace.page.getByText("This account is on the plan Wide.").waitFor();
    await open(grace, "Audit");
    await grace.page.getByText("plan Beta → Wide").waitFor();
    await lookAt(grace.page, "audit-of-plan-change");
  });

  it("sees the consensus and the slot of the cluster that the edge sends to", async () => {
    const ada = await fixture.page("Ada");
    await open(ada, "Operator");
    const cluster = ada.page.getByRole("table", { name: "Cluster" });
    await cluster.getByText("Tower BFT").waitFor();
    await cluster.getByText("Advances").waitFor();
    await lookAt(ada.page, "operator-cluster");
  });

  it("disables an account: its key is rejected and its session ended; and enables it", async () => {
    const grace = await fixture.visitor("Grace");
    const key = await revealedKey(grace);
    const status = async () => (await fixture.site.submit(key)).status;
    await expect.poll(status).toBe(200);
    const ada = await fixture.page("Ada");
    const row = await gracesRow(ada);
    await row.getByRole("button", { name: "Disable Grace User" }).click();
    await lookAt(ada.page, "dialog-disable-account");
    await ada.page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
    await row.getByText("Disabled", { exact: true }).waitFor();
    await expect.poll(status).toBe(401);
    await grace.page.reload();
    await grace.page.getByRole("button", { name: "Log in" }).click();
    await grace.page.getByText("This account is disabled.").waitFor();
    await lookAt(grace.page, "sign-in-disabled");
    await row.getByRole("button", { name: "Enable Grace User" }).click();
    await ada.page.getByRole("dialog").getByRole("button", { name: "Enable" }).click();
    await row.getByText("Disabled", { exact: true }).waitFor({ state: "detached" });
    await expect.poll(status).toBe(200);
    await grace.page.getByRole("button", { name: "Log in" }).click();
    await grace.page.getByRole("navigation", { name: "Pages" }).waitFor();
    // The browser reports the requests rejected meanwhile, and nothing else.
    allowComplaints(grace, /401/);
  });

  it("gets the accounts also where the sums of all usage take too long", async () => {
    const ada = await fixture.page("Ada");
    const error = { reason: "unavailable", message: "the database does not answer now" };
    await ada.page.route("**/api/v1/admin/usage?*", (route) =>
      route.fulfill({ status: 503, json: { error } }),
    );
    await open(ada, "Operator");
    await ada.page.getByRole("row", { name: /Ada Operator/ }).waitFor();
    const text = "The numbers of the last day are missing. The database does not answer now.";
    await ada.page.getByText(text).waitFor();
    await lookAt(ada.page, "operator-without-sums");
    allowComplaints(ada, /503/);
  });

  it("gets more of the accounts that were found, whatever is typed meanwhile", async () => {
    await fixture.site.owner.query(
      `insert into touchdown.accounts (name, plan, created_at)
       select 'of many ' || n, 'Beta', now() - n * interval '1 day' from generate_series(1, 60) n`,
    );
    const ada = await fixture.page("Ada");
    const { page } = ada;
    await open(ada, "Operator");
    await page.getByLabel("Name, login or id").fill("of many");
    await page.getByRole("button", { name: "Search" }).click();
    const rows = page.getByRole("table", { name: "Accounts" }).getByRole("row");
    await expect.poll(() => rows.count()).toBe(1 + 50);
    await rows.filter({ hasText: "of many 50" }).waitFor();
    await page.getByLabel("Name, login or id").fill("another search");
    await page.getByRole("button", { name: "Show more" }).click();
    await rows.filter({ hasText: "of many 60" }).waitFor();
    expect(await rows.count()).toBe(1 + 60);
  });

  it("gets an empty result for an unknown name; other users have no such page", async () => {
    const ada = await fixture.page("Ada");
    await open(ada, "Operator");
    await ada.page.getByLabel("Name, login or id").fill("nobody at all");
    await ada.page.getByRole("button", { name: "Search" }).click();
    await ada.page.getByText("No account is like that").waitFor();
    await lookAt(ada.page, "operator-nobody");
    const grace = await fixture.visitor("Grace");
    expect(await grace.page.getByRole("link", { name: "Operator" }).count()).toBe(0);
    await grace.page.goto(`${fixture.site.url}/admin`);
    await grace.page.getByText("There is no such page").waitFor();
    await lookAt(grace.page, "no-such-page");
  });
});
