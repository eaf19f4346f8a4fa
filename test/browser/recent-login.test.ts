/**
 * Actions that need a recent login. With an older login the user is sent to the provider and
 * returns to the interrupted action with the fields filled in.
 */

import { expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { challengeFor, open, type TestUser, type Visitor } from "../support/chromium.ts";
import { lookAt } from "../support/look.ts";
import { createSigner } from "../support/signer.ts";

const fixture = useBrowser({ control: { recent_login: "10s" } });

/** Waits until the login is no longer recent. */
async function untilOld({ page }: Visitor): Promise<void> {
  const recentUntil = `fetch("/api/v1/me").then((answer) => answer.json())
    .then(({ session }) => Date.parse(session.recent_until))`;
  const isOld = async () => (await page.evaluate<number>(recentUntil)) < Date.now();
  await expect.poll(isOld, { interval: 250 }).toBe(true);
}

async function logInAgain({ page }: Visitor, user: TestUser): Promise<void> {
  await page.getByRole("button", { name: "Log in again" }).click();
  await page.getByRole("button", { name: `Log in as ${user}` }).click();
}

/** The browser reports each rejected request, and nothing else. */
function onlyRefused({ complaints }: Visitor, count: number): void {
  expect(complaints.splice(0)).toEqual(new Array(count).fill(expect.stringContaining("401")));
}

it("revealing a key with an old login leads through a fresh one", async () => {
  const grace = await fixture.visitor("Grace");
  const { page } = grace;
  await open(grace, "Connect");
  await untilOld(grace);
  await page.getByRole("button", { name: "Reveal" }).click();
  await logInAgain(grace, "Grace");
  await page.getByRole("heading", { level: 1, name: "Connect" }).waitFor();
  await page
    .getByTestId("key")
    .filter({ hasText: /^td_[a-z]+_\w{20,}$/ })
    .waitFor();
  onlyRefused(grace, 1);
  // Resumed once: a reload shows only the page.
  await page.reload();
  await page.getByRole("button", { name: "Reveal" }).waitFor();
});

it("a key is revealed after a fresh login, also while a region does not respond", async () => {
  const grace = await fixture.visitor("Grace");
  const { page } = grace;
  await page.route("**/api/v1/tip", () => {});
  await open(grace, "Connect");
  await untilOld(grace);
  await page.getByRole("button", { name: "Reveal" }).click();
  await logInAgain(grace, "Grace");
  await page
    .getByTestId("key")
    .filter({ hasText: /^td_[a-z]+_\w{20,}$/ })
    .waitFor();
  onlyRefused(grace, 1);
});

it("a fresh login that failed is reported, and the session goes on", async () => {
  const { page } = await fixture.visitor("Grace");
  await page.goto(`${fixture.site.url}/login/callback?code=old&state=unknown`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  const told = page.getByText("That login took too long or was used already. Try again.");
  await told.waitFor();
  await lookAt(page, "fresh-login-failed");
  await page.getByRole("link", { name: "Keys", exact: true }).first().click();
  await told.waitFor({ state: "detached" });
});

it("a new account creates a key without a second login", async () => {
  const { page } = await fixture.visitor("Ada");
  await page.goto(`${fixture.site.url}/keys`);
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByLabel("Label").fill("newcomer");
  await page.getByRole("button", { name: "Make the key" }).click();
  await page.getByTestId("new-key").waitFor();
});

it("keys are created, rotated and revoked after a fresh login, fields restored", async () => {
  const grace = await fixture.visitor("Grace");
  const { page } = grace;
  await open(grace, "Keys");
  await untilOld(grace);
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Make a key" }).click();
  await dialog.getByLabel("Label").fill("from before");
  await dialog.getByLabel("Only from these addresses").fill("203.0.113.0/24\n2001:db8::/32");
  await dialog.getByLabel("Expires").selectOption("In 30 days");
  await dialog.getByRole("button", { name: "Make the key" }).click();
  await dialog.getByText("This needs a login of the last minutes.").waitFor();
  await lookAt(page, "dialog-login-again");
  await logInAgain(grace, "Grace");
  await dialog.getByRole("button", { name: "Make the key" }).click();
  await dialog.getByRole("button", { name: "Done" }).click();
  const card = page.locator("article", { hasText: "from before" });
  await card.getByText("203.0.113.0/24 2001:db8::/32").waitFor();

  await untilOld(grace);
  await page.getByRole("button", { name: "Rotate the key from before" }).click();
  await dialog.getByLabel("The old key works on for").selectOption("Ends immediately");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  await logInAgain(grace, "Grace");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByText("1 key that ended").waitFor();

  await untilOld(grace);
  await page.getByRole("button", { name: "Revoke the key from before" }).click();
  await dialog.getByRole("button", { name: "Revoke the key" }).click();
  await logInAgain(grace, "Grace");
  await dialog.getByRole("button", { name: "Revoke the key" }).click();
  await page.getByText("2 keys that ended").waitFor();
  onlyRefused(grace, 3);
});

it("a public key is added after a fresh login, text and fields restored", async () => {
  const grace = await fixture.visitor("Grace");
  const { page } = grace;
  const signer = createSigner();
  const { dialog, text } = await challengeFor(grace, signer.publicKey);
  await dialog.getByLabel("Signature").fill(signer.signOffchain(text));
  await dialog.getByLabel("Label").fill("signed slowly");
  await untilOld(grace);
  await dialog.getByRole("button", { name: "Add the key" }).click();
  await logInAgain(grace, "Grace");
  await dialog.getByText(text).waitFor();
  await dialog.getByRole("button", { name: "Add the key" }).click();
  await page.locator("article", { hasText: signer.publicKey }).getByText("Works").waitFor();
  onlyRefused(grace, 1);
});

it("an operator's change resumes after a fresh login, with the search restored", async () => {
  const ada = await fixture.visitor("Ada");
  const { page } = ada;
  await open(ada, "Operator");
  await page.getByLabel("Name, login or id").fill("grace");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("row", { name: /Ada Operator/ }).waitFor({ state: "detached" });
  await untilOld(ada);
  await page.getByRole("button", { name: "Disable Grace User" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await logInAgain(ada, "Ada");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await page.getByText("Disabled", { exact: true }).waitFor();
  expect(await page.getByLabel("Name, login or id").inputValue()).toBe("grace");
  onlyRefused(ada, 1);
});
