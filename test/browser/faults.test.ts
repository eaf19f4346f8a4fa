/** What pages show during failures of the service, and once the login has ended elsewhere. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, newPage, open, type Visitor } from "../support/chromium.ts";
import { lookAt } from "../support/look.ts";

const fixture = useBrowser();
let grace: Visitor;
beforeEach(async () => {
  grace = await fixture.page("Grace");
});
afterEach(() => fixture.site.setDatabaseAway(false));

describe("while the database is unreachable", () => {
  it("a loaded page keeps its frame, shows the error, and can be retried", async () => {
    const { page } = grace;
    await fixture.site.setDatabaseAway(true);
    await page.goto(`${fixture.site.url}/keys`);
    await page.getByText("The database of accounts does not answer now, try again").waitFor();
    const pages = page.getByRole("navigation", { name: "Pages" });
    expect(await pages.getByRole("link").count()).toBe(7);
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    expect(await pages.getByRole("link", { name: "Keys" }).getAttribute("aria-current")).toBe(
      "page",
    );
    expect(await page.getByText("Logged in as").count()).toBe(0);
    await lookAt(page, "database-away");
    await pages.getByRole("link", { name: "Connect" }).click();
    await page.getByRole("heading", { level: 1, name: "Connect" }).waitFor();
    await page.getByText("The database of accounts does not answer now").waitFor();
    await fixture.site.setDatabaseAway(false);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Reveal" }).waitFor();
    await page.getByText("Logged in as").waitFor();
    allowComplaints(grace, /503/);
  });

  it("a page opened by navigation keeps its frame", async () => {
    const { page } = grace;
    await open(grace, "Keys");
    await fixture.site.setDatabaseAway(true);
    await page.getByRole("link", { name: "Plan" }).click();
    await page.getByRole("heading", { level: 1, name: "Plan" }).waitFor();
    await page.getByText("The database of accounts does not answer now").waitFor();
    expect(await page.getByRole("navigation", { name: "Pages" }).getByRole("link").count()).toBe(7);
    await fixture.site.setDatabaseAway(false);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "Requests a second" }).waitFor();
    allowComplaints(grace, /503/);
  });
});

describe("an error is shown in plain words", () => {
  it("when a page's module cannot be fetched, which is then retried", async () => {
    const { page } = grace;
    await page.route("**/views/plan.js", (route) => route.abort());
    await page.getByRole("link", { name: "Plan" }).click();
    await page.getByText("This page could not be loaded from the dashboard's server.").waitFor();
    expect(await page.getByText(/dynamically imported/).count()).toBe(0);
    await lookAt(page, "page-not-loaded");
    await page.unroute("**/views/plan.js");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "Requests a second" }).waitFor();
    allowComplaints(grace, /ERR_FAILED|dynamically imported/);
  });

  it("next to an invalid field", async () => {
    const { page } = grace;
    await open(grace, "Keys");
    await page.getByRole("button", { name: "Make a key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Label").fill("x");
    const many = Array.from({ length: 33 }, (_, index) => `10.0.0.${index}`).join("\n");
    await dialog.getByLabel("Only from these addresses").fill(many);
    await dialog.getByRole("button", { name: "Make the key" }).click();
    await dialog.getByText("Must have at most 32 entries.").waitFor();
    allowComplaints(grace, /400/);
  });
});

describe("an ended login", () => {
  it("removes names and numbers from the browser's other pages", async () => {
    const here = await fixture.visitor("Grace");
    const there = await newPage(here.context);
    await there.page.goto(`${fixture.site.url}/overview`);
    await there.page.getByText("Live", { exact: true }).waitFor();
    await there.page.getByText("Grace User").waitFor();
    await open(here, "Keys");
    allowComplaints(here, /401/);
    await here.page.getByRole("button", { name: "Log out", exact: true }).first().click();
    // The page reloads, or keeps its frame with a notice if the server's 401 reaches it first.
    await there.page.getByRole("button", { name: "Log in", exact: true }).first().waitFor();
    await there.page.getByText("Grace User").waitFor({ state: "detached" });
    await there.page.locator(".tile").first().waitFor({ state: "detached" });
  });

  it("reported wrongly by one page does not reload the other pages", async () => {
    const here = await fixture.visitor("Grace");
    const there = await newPage(here.context);
    await there.page.goto(`${fixture.site.url}/overview`);
    await there.page.getByText("Live", { exact: true }).waitFor();
    await there.page.evaluate("document.body.dataset.kept = 'yes'");
    const asked = there.page.waitForResponse((response) => response.url().endsWith("/api/v1/me"));
    await here.page.evaluate("new BroadcastChannel('login').postMessage(null)");
    await asked;
    await there.page.getByText("Live", { exact: true }).waitFor();
    expect(await there.page.evaluate("document.body.dataset.kept")).toBe("yes");
  });

  it("removes names and numbers when another browser ended it", async () => {
    const other = await fixture.visitor("Grace");
    await other.page.getByText("Live", { exact: true }).waitFor();
    await other.page.getByText("Grace User").waitFor();
    const systemActor = {
      kind: "system",
      accountId: null,
      address: null,
      userAgent: null,
    } as const;
    // This ends the login of the page that is open throughout the file, too.
    for (const visitor of [other, grace]) allowComplaints(visitor, /401/);
    await fixture.site.store.sessions.endAll(await fixture.site.accountOf("Grace"), systemActor);
    await other.page.getByText("Logged out", { exact: true }).waitFor();
    expect(await other.page.getByText("Grace User").count()).toBe(0);
    expect(await other.page.locator(".tile").count()).toBe(0);
    // A pending request is rejected as well; no request follows this.
    await other.page.goto("about:blank");
  });
});
