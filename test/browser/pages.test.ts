/**
 * Every page at two widths and in both colour schemes: axe findings, browser complaints, and a
 * screenshot of each in `shots` next to this file. Then the size of the first page, and the main
 * path by keyboard only.
 */

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { untilResponse } from "../support/flow.ts";
import { lookAt, settled } from "../support/look.ts";

const PAGES = ["overview", "connect", "keys", "transactions", "plan", "audit", "account", "admin"];
const FIRST_PAGE_BYTES_MAX = 200_000;
const SYSTEM_ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;

const fixture = useBrowser();
let signature = "";
beforeAll(async () => {
  // Her first login creates an account.
  await fixture.page("Ada");
  signature = await makeTraffic();
});

/** Creates one of each: landed, rejected, a key with limits. Returns the last signature. */
async function makeTraffic(): Promise<string> {
  const account = await fixture.site.accountOf("Ada");
  const limits = { expiresAtMs: null, cidrs: ["127.0.0.0/8"], ratePerSecond: 40, burst: 90 };
  const keyOf = async (label: string) => {
    const made = await fixture.site.store.keys.create(account, { label, ...limits }, SYSTEM_ACTOR);
    if (made.kind !== "ok") throw new Error(made.detail);
    // A key change takes a moment to reach the edge.
    const refused = async () =>
      (await fixture.site.submit(made.value.token, new Uint8Array(9))).text;
    await untilResponse("the key at the edge", refused, (text) => text.includes("undecodable"));
    return made.value.token;
  };
  // A label of maximum length without a break opportunity: nothing may overflow.
  await keyOf("x".repeat(64));
  const token = await keyOf("trading bot");
  let last = "";
  for (let index = 0; index < 24; index += 1) last = (await fixture.site.submit(token)).signature;
  return last;
}

const FOCUSED = `
  document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()`;

describe("in both schemes, on a phone and on a desk,", () => {
  it.each(PAGES)("the page %s is sound", async (name) => {
    const { page } = await fixture.page("Ada");
    const query = name === "transactions" ? `?signature=${signature}` : "";
    await page.goto(`${fixture.site.url}/${name}${query}`);
    await settled(page);
    if (name === "overview") await page.locator(".uplot canvas").nth(2).waitFor();
    if (name === "transactions") await page.getByText(/^Landed in slot/).waitFor();
    await lookAt(page, name);
  });

  it.each(["Make a key", "Link a key"])("the dialog %s is sound", async (name) => {
    const { page } = await fixture.page("Ada");
    await page.goto(`${fixture.site.url}/keys`);
    await page.getByRole("button", { name }).click();
    await lookAt(page, `dialog-${name.toLowerCase().replaceAll(" ", "-")}`);
  });

  it("the sign-in page is sound", async () => {
    const stranger = await fixture.visitor();
    await stranger.page.goto(fixture.site.url);
    await settled(stranger.page);
    await lookAt(stranger.page, "sign-in");
  });

  it("the page of an account without transactions shows an empty state", async () => {
    const grace = await fixture.visitor("Grace");
    await grace.page.getByText("Nothing was sent in the last hour").waitFor();
    await lookAt(grace.page, "overview-empty");
  });
});

describe("a server error", () => {
  it("is shown in words, with a retry button", async () => {
    const { page, complaints } = await fixture.visitor("Grace");
    const body = JSON.stringify({
      error: { reason: "unavailable", message: "the database cannot be reached now" },
    });
    await page.route("**/api/v1/keys", (route) =>
      route.fulfill({ status: 503, contentType: "application/json", body }),
    );
    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByText("The database cannot be reached now.").waitFor();
    await page.unroute("**/api/v1/keys");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "First key" }).waitFor();
    // The browser reports that response, and nothing else.
    expect(complaints.splice(0)).toEqual([expect.stringContaining("503")]);
  });
});

describe("an unknown page address", () => {
  it("shows an error, with a link to the pages", async () => {
    const { page, complaints } = await fixture.page("Ada");
    await page.goto(`${fixture.site.url}/overveiw`);
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await lookAt(page, "no-such-page");
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    expect(complaints.splice(0)).toEqual([expect.stringContaining("404")]);
  });
});

describe("the first page", () => {
  /** Bytes transferred and milliseconds until usable, with an empty cache. */
  async function weigh(page: Page, url: string, usable: string) {
    const wire = await page.context().newCDPSession(page);
    let bytes = 0;
    await wire.send("Network.enable");
    await wire.send("Network.setCacheDisabled", { cacheDisabled: true });
    wire.on("Network.loadingFinished", (event) => {
      bytes += event.encodedDataLength;
    });
    await page.goto(url, { waitUntil: "commit" });
    await page.locator(usable).first().waitFor();
    const ms = Math.round(await page.evaluate<number>("performance.now()"));
    await page.waitForLoadState("load");
    if (usable.includes("canvas")) await page.locator(usable).nth(2).waitFor();
    return { bytes, ms };
  }

  it("transfers less than 200 kB, for a visitor and for an account with numbers", async () => {
    const stranger = await fixture.visitor();
    const door = await weigh(stranger.page, fixture.site.url, "button.main");
    const ada = await fixture.page("Ada");
    const overview = await weigh(ada.page, `${fixture.site.url}/overview`, ".uplot canvas");
    const line = ({ bytes, ms }: typeof door) => `${Math.round(bytes / 1000)} kB, usable ${ms} ms`;
    process.stdout.write(`sign-in: ${line(door)}; overview: ${line(overview)}\n`);
    for (const { bytes } of [door, overview]) {
      expect(bytes).toBeGreaterThan(10_000);
      expect(bytes).toBeLessThan(FIRST_PAGE_BYTES_MAX);
    }
  });
});

describe("by the keyboard alone", () => {
  /** Presses Tab until the focused element has this name. */
  async function tabTo(page: Page, name: RegExp): Promise<void> {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate<string>(FOCUSED);
      if (name.test(focused)) return;
    }
    throw new Error(`Tab leads to nothing named ${name}`);
  }

  it("a user logs in, reveals the key and reads the next program", async () => {
    const { page } = await fixture.visitor();
    await page.goto(fixture.site.url);
    await page.getByRole("button", { name: "Log in" }).waitFor();
    await tabTo(page, /^Log in$/);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Log in as Grace" }).waitFor();
    await tabTo(page, /^Log in as Grace/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await tabTo(page, /^Skip to the content$/);
    await tabTo(page, /^Connect$/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Connect" }).waitFor();
    await tabTo(page, /^Reveal$/);
    await page.keyboard.press("Enter");
    const key = page.getByTestId("key").filter({ hasText: /^td_[a-z]+_\w{20,}$/ });
    await key.waitFor();
    await tabTo(page, /^curl$/);
    await page.keyboard.press("ArrowRight");
    const program = page.getByRole("region", { name: "Program for web3.js" });
    expect(await program.innerText()).toContain(await key.innerText());
  });
});
