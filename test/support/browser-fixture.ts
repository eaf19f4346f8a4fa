/**
 * The fixture of every browser test: the complete service and Chromium, once per file, and
 * visitors. Each visitor ends with its test, which fails if the browser reported a complaint that
 * the test did not remove from `complaints`. Note: logins are limited per address, and here all
 * come from one. So a file logs each test user in once and gives each test its own page in that
 * browser; a test that ends a session, or needs a second one, starts its own browser.
 */

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import {
  logIn,
  newPage,
  startChromium,
  type TestUser,
  unexpectedComplaints,
  type Visitor,
  visit,
} from "./chromium.ts";
import { type Dashboard, type DashboardOptions, startDashboard } from "./dashboard.ts";

export interface BrowserFixture {
  readonly site: Dashboard;
  readonly browser: Browser;
  /** A new page of the browser in which this test user is logged in for the complete file. */
  page(user: TestUser): Promise<Visitor>;
  /** A separate browser without a login, or with this test user's. */
  visitor(user?: TestUser): Promise<Visitor>;
}

/** Call once, at the top of a test file. */
export function useBrowser(options: DashboardOptions = {}): BrowserFixture {
  let site: Dashboard | null = null;
  let browser: Browser | null = null;
  const homes = new Map<TestUser, Visitor>();
  const visitors: { readonly visitor: Visitor; readonly end: () => Promise<void> }[] = [];

  beforeAll(async () => {
    [site, browser] = await Promise.all([startDashboard(options), startChromium()]);
  });
  afterEach(async () => {
    const all = visitors.splice(0);
    for (const { end } of all) await end();
    expect(all.flatMap(({ visitor }) => unexpectedComplaints(visitor))).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
  });

  const fixture: BrowserFixture = {
    get site() {
      return started(site);
    },
    get browser() {
      return started(browser);
    },
    async page(user) {
      let home = homes.get(user);
      if (home === undefined) {
        home = await visit(fixture.browser);
        await logIn(home, fixture.site.url, user);
        homes.set(user, home);
      }
      const visitor = await newPage(home.context);
      visitors.push({ visitor, end: () => visitor.page.close() });
      await enter(visitor, fixture.site.url, user);
      return visitor;
    },
    async visitor(user) {
      const visitor = await visit(fixture.browser);
      visitors.push({ visitor, end: () => visitor.context.close() });
      if (user !== undefined) await logIn(visitor, fixture.site.url, user);
      return visitor;
    },
  };
  return fixture;
}

/** Opens the dashboard, with a new login if another test ended the session. */
async function enter({ page, complaints }: Visitor, url: string, user: TestUser): Promise<void> {
  await page.goto(`${url}/overview`);
  const inside = page.getByRole("navigation", { name: "Pages" });
  const door = page.getByRole("button", { name: "Log in", exact: true });
  await inside.or(door).first().waitFor();
  if ((await door.count()) === 0) return;
  await door.click();
  // The provider may still have its own login and does not ask then.
  const choice = page.getByRole("button", { name: `Log in as ${user}` });
  await choice.or(inside).first().waitFor();
  if ((await choice.count()) > 0) await choice.click();
  await inside.waitFor();
  // Caused by the ended session.
  complaints.splice(0);
}

function started<T>(part: T | null): T {
  if (part === null) throw new Error("the fixture is used before it has started");
  return part;
}
