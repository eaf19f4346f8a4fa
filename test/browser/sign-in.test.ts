/** The sign-in page after a failed login. */

import { describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { lookAt } from "../support/look.ts";
import { freePort } from "../support/ports.ts";

const fixture = useBrowser({ control: { oidc_issuer: `http://127.0.0.1:${await freePort()}` } });

describe("a login", () => {
  it("that cannot start without the provider is reported before and after an attempt", async () => {
    const { page, complaints } = await fixture.visitor();
    await page.goto(fixture.site.url);
    const told = page
      .getByRole("alert")
      .getByText(/^The identity provider cannot be reached now\./);
    await told.getByText("Try again in a moment.").waitFor();
    await lookAt(page, "sign-in-provider-away");
    const button = page.getByRole("button", { name: "Log in" });
    await button.click();
    await told.filter({ hasNotText: "Try again" }).waitFor();
    expect(await button.isEnabled()).toBe(true);
    // The browser reports the response, and nothing else.
    expect(complaints.splice(0)).toEqual([expect.stringContaining("503")]);
  });

  it("that was already used, or not started here, is reported with what to do", async () => {
    const { page } = await fixture.visitor();
    await page.goto(`${fixture.site.url}/login/callback?code=old&state=unknown`);
    await page.getByText("That login took too long or was used already. Try again.").waitFor();
    await page.goto(`${fixture.site.url}/?login_error=disabled`);
    await page.getByText("This account is disabled. Ask whoever runs this service.").waitFor();
    await page.goto(`${fixture.site.url}/?login_error=%3Cscript%3E`);
    await page.getByText("The login did not work. Try again.").waitFor();
  });
});
