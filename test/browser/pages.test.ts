/**
 * Every page at two widths and in both colour schemes: what axe finds, what the browser complains
 * of, and a picture of each to be looked at, in `shots` beside this file. Then the weight of the
 * first page, and the main path by the keyboard alone.
 */

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { logIn, startChromium, type Visitor, visit } from "../support/chromium.ts";
import { type Dashboard, startDashboard } from "../support/dashboard.ts";
import { untilAnswer } from "../support/flow.ts";

const SHOTS = join(import.meta.dirname, "shots");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["overview", "connect", "keys", "transactions", "plan", "audit", "account", "admin"];
const SCHEMES = ["light", "dark"] as const;
const WIDTHS = [390, 1280];
const FIRST_PAGE_BYTES_MAX = 200_000;
const NOBODY = { kind: "system", accountId: null, address: null, userAgent: null } as const;

let site: Dashboard;
let browser: Browser;
let ada: Visitor;
let signature = "";
beforeAll(async () => {
  [site, browser] = await Promise.all([startDashboard(), startChromium()]);
  mkdirSync(SHOTS, { recursive: true });
  ada = await visit(browser);
  await logIn(ada, site.url, "Ada");
  signature = await makeTraffic();
});
afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

/** Something of everything: landed ones, refused ones, a key with limits. The last signature. */
async function makeTraffic(): Promise<string> {
  const { accounts, keys } = site.store;
  const [account] = (await accounts.list({ search: "", limit: 1, after: null })).items;
  const limits = { expiresAtMs: null, cidrs: ["127.0.0.0/8"], ratePerSecond: 40, burst: 90 };
  const made = await keys.create(account?.id ?? "", { label: "trading bot", ...limits }, NOBODY);
  if (made.kind !== "ok") throw new Error(made.detail);
  const send = async (body: Uint8Array) => {
    const answer = await fetch(`${site.edgeUrl}/api/v1/sendRawTransaction`, {
      method: "POST",
      headers: { "api-x-token": made.value.token, "content-type": "application/octet-stream" },
      body: Buffer.from(body),
    });
    return JSON.stringify(await answer.json());
  };
  // The news of a key takes a moment to reach the edge.
  const refused = () => send(new Uint8Array(9));
  await untilAnswer("the key at the edge", refused, (text) => text.includes("undecodable"));
  let last = "";
  for (let index = 0; index < 24; index += 1) last = await send(site.transaction());
  return /"signature":"(\w+)"/.exec(last)?.[1] ?? "";
}

/** Runs in the page; as text, because what it speaks of is not known here. */
const RUN_AXE = `
  axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations
      .filter(({ impact }) => ["serious", "critical"].includes(impact))
      .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html).join(" ")),
  )`;
const TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
const FOCUSED = `
  document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()`;

/** What axe finds serious or critical, in a line each. */
async function findings(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  return await page.evaluate<string[]>(RUN_AXE);
}

/** Both widths and schemes of what is shown: pictures, and axe's findings. */
async function lookAt({ page, complaints }: Visitor, name: string): Promise<void> {
  for (const scheme of SCHEMES) {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width < 500 ? 844 : 900 });
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.screenshot({
        path: join(SHOTS, `${name}-${width}-${scheme}.png`),
        fullPage: true,
        animations: "disabled",
      });
      expect([name, scheme, width, await findings(page)]).toEqual([name, scheme, width, []]);
      const overflow = [name, width, "px too wide:", await page.evaluate(TOO_WIDE)];
      expect(overflow).toEqual([name, width, "px too wide:", 0]);
    }
  }
  expect(complaints).toEqual([]);
}

/** Waits until nothing is being fetched and drawn any more. */
async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor();
  await expect.poll(() => page.locator(".bones").count()).toBe(0);
}

describe("in both schemes, on a phone and on a desk,", () => {
  it.each(PAGES)("the page %s is sound", async (name) => {
    const query = name === "transactions" ? `?signature=${signature}` : "";
    await ada.page.goto(`${site.url}/${name}${query}`);
    await settled(ada.page);
    if (name === "overview") await ada.page.locator(".uplot canvas").nth(2).waitFor();
    if (name === "transactions") await ada.page.getByText(/^Landed in slot/).waitFor();
    await lookAt(ada, name);
  });

  it.each(["Make a key", "Link a key"])("the dialog %s is sound", async (name) => {
    await ada.page.goto(`${site.url}/keys`);
    await ada.page.getByRole("button", { name }).click();
    await lookAt(ada, `dialog-${name.toLowerCase().replaceAll(" ", "-")}`);
  });

  it("the page for those who are not logged in is sound", async () => {
    const stranger = await visit(browser);
    await stranger.page.goto(site.url);
    await settled(stranger.page);
    await lookAt(stranger, "sign-in");
    await stranger.context.close();
  });

  it("the page of an account that sent nothing yet says so", async () => {
    const grace = await visit(browser);
    await logIn(grace, site.url, "Grace");
    await grace.page.getByText("Nothing was sent in the last hour").waitFor();
    await lookAt(grace, "overview-empty");
    await grace.context.close();
  });
});

describe("a fault of the server", () => {
  it("is told in words, with a way to try again", async () => {
    const grace = await visit(browser);
    await logIn(grace, site.url, "Grace");
    const body = JSON.stringify({
      error: { reason: "unavailable", sentence: "the database cannot be reached now" },
    });
    await grace.page.route("**/api/v1/keys", (route) =>
      route.fulfill({ status: 503, contentType: "application/json", body }),
    );
    await grace.page.getByRole("link", { name: "Keys" }).click();
    await grace.page.getByText("The database cannot be reached now.").waitFor();
    await grace.page.unroute("**/api/v1/keys");
    await grace.page.getByRole("button", { name: "Try again" }).click();
    await grace.page.getByRole("heading", { name: "First key" }).waitFor();
    await grace.context.close();
  });
});

describe("the first page", () => {
  /** Bytes over the wire and milliseconds until it can be used, without anything kept. */
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

  it("weighs less than 200 kB, for a stranger and for an account with numbers", async () => {
    const stranger = await visit(browser);
    const door = await weigh(stranger.page, site.url, "button.main");
    const overview = await weigh(ada.page, `${site.url}/overview`, ".uplot canvas");
    const line = ({ bytes, ms }: typeof door) => `${Math.round(bytes / 1000)} kB, usable ${ms} ms`;
    process.stdout.write(`sign-in: ${line(door)}; overview: ${line(overview)}\n`);
    for (const { bytes } of [door, overview]) {
      expect(bytes).toBeGreaterThan(10_000);
      expect(bytes).toBeLessThan(FIRST_PAGE_BYTES_MAX);
    }
    await stranger.context.close();
  });
});

describe("by the keyboard alone", () => {
  /** Presses Tab until what has the focus is named so. */
  async function tabTo(page: Page, name: RegExp): Promise<void> {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate<string>(FOCUSED);
      if (name.test(focused)) return;
    }
    throw new Error(`Tab leads to nothing named ${name}`);
  }

  it("one logs in, reveals the key and reads the next program", async () => {
    const { page, context, complaints } = await visit(browser);
    await page.goto(site.url);
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
    expect(complaints).toEqual([]);
    await context.close();
  });
});
