/**
 * What is done with keys in a browser, and what an edge then makes of them; labels that try to be
 * code; and a key that hides itself.
 */

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  logIn,
  open,
  revealedKey,
  startChromium,
  type Visitor,
  visit,
} from "../support/chromium.ts";
import { type Dashboard, startDashboard } from "../support/dashboard.ts";

const HOSTILE = `"><img src=x onerror="alert(1)"><script>alert(2)</script>`;
const NOBODY = { kind: "system", accountId: null, address: null, userAgent: null } as const;

let site: Dashboard;
let browser: Browser;
let grace: Visitor;
beforeAll(async () => {
  [site, browser] = await Promise.all([startDashboard(), startChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await site?.stop();
});
beforeEach(async () => {
  grace = await visit(browser);
  await logIn(grace, site.url, "Grace");
});
afterEach(async () => {
  expect(grace.complaints).toEqual([]);
  await grace.context.close();
});

/** How the edge answers a transaction with this key. */
async function statusOf(key: string): Promise<number> {
  const answer = await fetch(`${site.edgeUrl}/api/v1/sendRawTransaction`, {
    method: "POST",
    headers: { "api-x-token": key, "content-type": "application/octet-stream" },
    body: Buffer.from(site.transaction()),
  });
  await answer.text();
  return answer.status;
}

/** Asks the edge until it answers so; the news of a key takes a moment to reach it. */
async function untilStatus(key: string, status: number): Promise<void> {
  await expect.poll(() => statusOf(key)).toBe(status);
}

/** Makes a key by the page; its text. */
async function makeKey(label: string): Promise<string> {
  const { page } = grace;
  await open(grace, "Keys");
  await page.getByRole("button", { name: "Make a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Label").fill(label);
  await dialog.getByRole("button", { name: "Make the key" }).click();
  return await newKey();
}

async function newKey(): Promise<string> {
  const key = await grace.page.getByTestId("new-key").innerText();
  await grace.page.getByRole("button", { name: "Done" }).click();
  return key;
}

describe("the page Keys", () => {
  it("makes a key that works, and ends it", async () => {
    const key = await makeKey("to be ended");
    await untilStatus(key, 200);
    await grace.page.getByRole("button", { name: "Revoke the key to be ended" }).click();
    await grace.page.getByRole("dialog").getByRole("button", { name: "Revoke the key" }).click();
    await untilStatus(key, 401);
  });

  it("rotates a key, with the old one working on or ended at once", async () => {
    const first = await makeKey("rotated");
    const rotate = async (overlap: string): Promise<string> => {
      // The old one, where it works on, is further down.
      await grace.page.getByRole("button", { name: "Rotate the key rotated" }).first().click();
      await grace.page.getByLabel("The old key works on for").selectOption(overlap);
      await grace.page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
      return await newKey();
    };
    const second = await rotate("A day");
    await untilStatus(second, 200);
    const third = await rotate("End it at once");
    await untilStatus(third, 200);
    await untilStatus(second, 401);
    expect(await statusOf(first)).toBe(200);
  });

  it("links a key of an account without a login, once", async () => {
    const { accounts, keys } = site.store;
    const made = await accounts.create("old customer", "Beta", NOBODY);
    if (made.kind !== "ok") throw new Error(made.detail);
    const none = { expiresAtMs: null, cidrs: [], ratePerSecond: null, burst: null };
    const key = await keys.create(made.value.id, { label: "from before", ...none }, NOBODY);
    if (key.kind !== "ok") throw new Error(key.detail);
    await open(grace, "Keys");
    await grace.page.getByRole("button", { name: "Link a key" }).click();
    const dialog = grace.page.getByRole("dialog");
    await dialog.getByLabel("The key").fill(key.value.token);
    await dialog.getByRole("button", { name: "Link the key" }).click();
    await grace.page.getByRole("heading", { name: "from before" }).waitFor();
    await untilStatus(key.value.token, 200);
  });

  it("says what is wrong with a restriction, beside its field", async () => {
    await open(grace, "Keys");
    await grace.page.getByRole("button", { name: "Make a key" }).click();
    const dialog = grace.page.getByRole("dialog");
    await dialog.getByLabel("Label").fill("restricted");
    await dialog.getByLabel("Only from these addresses").fill("not-a-network");
    await dialog.getByRole("button", { name: "Make the key" }).click();
    await dialog.locator(".wrong, .note.bad").first().waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    // The browser itself complains of the refused request, and of nothing else.
    expect(grace.complaints.splice(0)).toEqual([expect.stringContaining("400")]);
  });

  it("shows a label that tries to be code as the text it is, on every page", async () => {
    const label = HOSTILE.slice(0, 64);
    await makeKey(label);
    await grace.page.getByRole("heading", { name: label }).waitFor();
    for (const name of ["Overview", "Connect", "Audit", "Keys"]) {
      await open(grace, name);
      await grace.page.waitForLoadState("networkidle").catch(() => null);
      expect(await grace.page.locator('img[src="x"], main script').count()).toBe(0);
    }
  });
});

describe("a revealed key", () => {
  it("hides itself after half a minute", async () => {
    // Time stands still in this page but for what is said here.
    await grace.page.clock.install();
    await grace.page.clock.pauseAt(Date.now() + 60_000);
    const key = await revealedKey(grace);
    const box = grace.page.getByTestId("key");
    await grace.page.clock.fastForward(29_000);
    expect(await box.innerText()).toBe(key);
    await grace.page.clock.fastForward(2000);
    expect(await box.innerText()).toMatch(/^td_…\w{4}$/);
    expect(await grace.page.getByText(key).count()).toBe(0);
  });

  it("is gone when the page is left and come back to", async () => {
    const key = await revealedKey(grace);
    await open(grace, "Keys");
    await grace.page.goBack();
    await grace.page.getByRole("heading", { level: 1, name: "Connect" }).waitFor();
    expect(await grace.page.getByText(key).count()).toBe(0);
    expect(await grace.page.content()).not.toContain(key);
  });
});

describe("logging out", () => {
  it("ends the session, and the way back needs a login", async () => {
    await grace.page.getByRole("button", { name: "Log out" }).click();
    await grace.page.getByRole("button", { name: "Log in" }).waitFor();
    await grace.page.goto(`${site.url}/keys`);
    await grace.page.getByRole("button", { name: "Log in" }).click();
    await grace.page.getByRole("button", { name: "Log in as Grace" }).or(keysTitle()).waitFor();
  });
});

function keysTitle() {
  return grace.page.getByRole("heading", { level: 1, name: "Keys" });
}
