/**
 * Sessions that expire while a page is open. A separate file, because logins are limited per
 * address and every test here needs some.
 */

import { describe, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, atTheDoor, open } from "../support/chromium.ts";
import { lookAt } from "../support/look.ts";

const SYSTEM_ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;
const fixture = useBrowser();

describe("a session that ends while its page is open", () => {
  async function end(): Promise<void> {
    await fixture.site.store.sessions.endAll(await fixture.site.accountOf("Grace"), SYSTEM_ACTOR);
  }

  it("is shown on a page with live numbers, with a login link back to it", async () => {
    const grace = await fixture.visitor("Grace");
    await grace.page.getByText("Live", { exact: true }).waitFor();
    await end();
    await grace.page.getByText("This session has ended. A login leads back here.").waitFor();
    await grace.page.getByText("Logged out", { exact: true }).waitFor();
    await lookAt(grace.page, "session-ended-overview");
    await grace.page.getByRole("button", { name: "Log in" }).click();
    await grace.page.getByText("Live", { exact: true }).waitFor();
  });

  it("is shown in a dialog, by a reveal and by a page; the login leads back there", async () => {
    const grace = await fixture.visitor("Grace");
    const { page } = grace;
    await open(grace, "Keys");
    await page.getByRole("button", { name: "Make a key" }).click();
    await end();
    await page.getByLabel("Label").fill("too late");
    await page.getByRole("button", { name: "Make the key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("This session has ended").waitFor();
    await lookAt(page, "session-ended-dialog");
    await dialog.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();

    await open(grace, "Connect");
    await page.getByRole("button", { name: "Reveal" }).waitFor();
    await end();
    await page.getByRole("button", { name: "Reveal" }).click();
    await page.getByText("This session has ended").waitFor();
    await page.getByRole("link", { name: "Account" }).click();
    await page.getByRole("heading", { name: "This session has ended" }).first().waitFor();
    await page.getByRole("button", { name: "Log in" }).first().click();
    await page.getByRole("button", { name: "Log out everywhere" }).waitFor();

    await end();
    await page.getByRole("button", { name: "Log out", exact: true }).click();
    await atTheDoor(grace);
    allowComplaints(grace, /401/);
  });
});
