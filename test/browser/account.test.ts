/**
 * Account management in a browser: ending sessions, here and everywhere; management tokens and
 * their use with curl.
 */

import { describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, atTheDoor, open, type Visitor } from "../support/chromium.ts";
import { runProgram } from "../support/flow.ts";
import { lookAt, settled } from "../support/look.ts";

const fixture = useBrowser();

/** Whether the browser's cookie still opens a session. */
async function isIn({ page }: Visitor): Promise<boolean> {
  const ask = `fetch("/api/v1/site").then((answer) => answer.json())
    .then(({ logged_in }) => logged_in ? fetch("/api/v1/me").then(({ ok }) => ok) : false)`;
  return await page.evaluate<boolean>(ask);
}

/** Logs out here; who is faster than the page's first questions would have them refused. */
async function logOut({ page }: Visitor): Promise<void> {
  await page.getByText("Live", { exact: true }).waitFor();
  await settled(page);
  await page.getByRole("button", { name: "Log out" }).click();
}

/** Confirms the provider's prompt after a logout here. */
async function atProvider({ page }: Visitor, response: string): Promise<void> {
  await page.getByRole("heading", { name: "Log out of the sandbox" }).waitFor();
  await page.getByRole("button", { name: response }).click();
}

/** Starts a login; returns whether the provider asks for the identity. */
async function isAsked({ page }: Visitor): Promise<boolean> {
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  const question = page.getByRole("button", { name: "Log in as Grace" });
  await question
    .or(page.getByRole("navigation", { name: "Pages" }))
    .first()
    .waitFor();
  return (await question.count()) === 1;
}

describe("logging out", () => {
  it("redirects to the provider, ends the login there too, and returns", async () => {
    const grace = await fixture.visitor("Grace");
    await logOut(grace);
    await grace.page.getByRole("heading", { name: "Log out of the sandbox" }).waitFor();
    await lookAt(grace.page, "provider-log-out");
    await atProvider(grace, "Log out here too");
    await atTheDoor(grace);
    expect(await isIn(grace)).toBe(false);
    await grace.page.goto(`${fixture.site.url}/keys`);
    expect(await isAsked(grace)).toBe(true);
    await lookAt(grace.page, "provider-log-in");
    await grace.page.getByRole("button", { name: "Log in as Grace" }).click();
    await grace.page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  });

  it("can keep the provider's login, which is then reused without asking", async () => {
    const grace = await fixture.visitor("Grace");
    await logOut(grace);
    await atProvider(grace, "Stay logged in here");
    await atTheDoor(grace);
    expect(await isIn(grace)).toBe(false);
    expect(await isAsked(grace)).toBe(false);
  });

  it("everywhere ends the sessions of other browsers; a single one can be ended too", async () => {
    const [here, there] = [await fixture.visitor("Grace"), await fixture.visitor("Grace")];
    await open(here, "Account");
    const sessions = here.page.getByRole("region", { name: "Sessions" }).first();
    await sessions.getByText("this one").waitFor();
    await lookAt(here.page, "account-sessions");
    const third = await fixture.visitor("Grace");
    await open(third, "Account");
    await third.page
      .getByRole("button", { name: /^End the session from/ })
      .first()
      .click();
    await expect
      .poll(async () => [await isIn(here), await isIn(there)].filter(Boolean).length)
      .toBe(1);
    const left = (await isIn(here)) ? here : there;
    for (const one of [here, there]) allowComplaints(one, /401/);
    await open(third, "Account");
    await third.page.getByRole("button", { name: "Log out everywhere" }).click();
    const dialog = third.page.getByRole("dialog");
    await lookAt(third.page, "dialog-log-out-everywhere");
    await dialog.getByRole("button", { name: "Log out everywhere" }).click();
    await atProvider(third, "Log out here too");
    await atTheDoor(third);
    expect([await isIn(third), await isIn(left)]).toEqual([false, false]);
  });
});

describe("a management token", () => {
  /** Calls the API with curl and this token; returns the status and the body as JSON. */
  async function curl(token: string, path: string, ...more: readonly string[]) {
    const call = ["-sS", "-w", "\\n%{http_code}", "-H", `Authorization: Bearer ${token}`, ...more];
    const { out } = await runProgram("curl", [...call, `${fixture.site.url}${path}`]);
    const split = out.lastIndexOf("\n");
    const body: unknown = JSON.parse(out.slice(0, split));
    return { status: Number(out.slice(split + 1)), body };
  }

  async function makeToken({ page }: Visitor, label: string, scope: string): Promise<string> {
    await page.getByRole("button", { name: "Make a token" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Label").fill(label);
    await dialog.getByLabel("It may").selectOption(scope);
    await dialog.getByLabel("Expires").selectOption("In a day");
    await dialog.getByRole("button", { name: "Make the token" }).click();
    const shown = dialog.getByText(/^tdm_[\w-]{16,}$/);
    const token = await shown.innerText();
    await lookAt(page, `dialog-new-token-${scope}`);
    await dialog.getByRole("button", { name: "Done" }).click();
    return token;
  }

  it("with scope read reads with curl, changes nothing, and is rejected once revoked", async () => {
    const grace = await fixture.page("Grace");
    await open(grace, "Account");
    const token = await makeToken(grace, "reader", "read");
    expect(await curl(token, "/api/v1/me")).toMatchObject({
      status: 200,
      body: { account: { name: "Grace User" } },
    });
    expect((await curl(token, "/api/v1/keys")).status).toBe(200);
    const list = await curl(token, "/api/v1/transactions?state=landed&limit=5");
    const body = { transactions: expect.any(Array), more: false };
    expect(list).toMatchObject({ status: 200, body });
    const json = ["-H", "content-type: application/json", "-d", '{"label":"by curl"}'];
    const write = await curl(token, "/api/v1/keys", ...json);
    expect(write).toMatchObject({ status: 403, body: { error: { reason: "forbidden" } } });
    await grace.page
      .getByRole("row", { name: /reader/ })
      .getByText("In", { exact: false })
      .first()
      .waitFor();
    await grace.page.getByRole("button", { name: "Revoke the token reader" }).click();
    await grace.page.getByRole("button", { name: "Revoke the token", exact: true }).click();
    await grace.page.getByRole("row", { name: /reader/ }).waitFor({ state: "detached" });
    expect((await curl(token, "/api/v1/me")).status).toBe(401);
  });

  it("with scope write creates a key with curl that an edge accepts, and revokes it", async () => {
    const grace = await fixture.page("Grace");
    await open(grace, "Account");
    const token = await makeToken(grace, "writer", "write");
    const json = ["-H", "content-type: application/json"];
    const made = await curl(token, "/api/v1/keys", ...json, "-d", '{"label":"by curl"}');
    expect(made).toMatchObject({ status: 201, body: { key: { label: "by curl" } } });
    const { key, token: text } = Object(made.body);
    const status = async () => (await fixture.site.submit(text)).status;
    await expect.poll(status).toBe(200);
    await open(grace, "Keys");
    await grace.page.getByRole("heading", { name: "by curl" }).waitFor();
    const gone = await curl(token, `/api/v1/keys/${key.id}/revoke`, ...json, "-d", "{}");
    expect(gone.status).toBe(200);
    await expect.poll(status).toBe(401);
    const reveal = await curl(token, `/api/v1/keys/${key.id}/reveal`, ...json, "-d", "{}");
    expect(reveal.status).toBe(403);
  });
});
