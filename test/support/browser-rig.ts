/**
 * What every test in a browser needs: the whole service and Chromium, once a file, and visitors.
 * Each visitor ends with its test, which fails when the browser had something to complain of that
 * the test did not take out of `complaints`.
 *
 * The surprise: logins are limited for each address, and here all come from one. So a file logs
 * each person in once and gives each test a page of its own in that browser; a test that ends a
 * session, or needs a second one, asks for a browser of its own.
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

export interface BrowserRig {
  readonly site: Dashboard;
  readonly browser: Browser;
  /** A fresh page of the browser in which this person is logged in for the whole file. */
  page(user: TestUser): Promise<Visitor>;
  /** A browser of its own with nobody logged in, or this person. */
  visitor(user?: TestUser): Promise<Visitor>;
}

/** To be called at the top of a test file, once. */
export function useBrowser(options: DashboardOptions = {}): BrowserRig {
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

  const rig: BrowserRig = {
    get site() {
      return started(site);
    },
    get browser() {
      return started(browser);
    },
    async page(user) {
      let home = homes.get(user);
      if (home === undefined) {
        home = await visit(rig.browser);
        await logIn(home, rig.site.url, user);
        homes.set(user, home);
      }
      const visitor = await newPage(home.context);
      visitors.push({ visitor, end: () => visitor.page.close() });
      await enter(visitor, rig.site.url, user);
      return visitor;
    },
    async visitor(user) {
      const visitor = await visit(rig.browser);
      visitors.push({ visitor, end: () => visitor.context.close() });
      if (user !== undefined) await logIn(visitor, rig.site.url, user);
      return visitor;
    },
  };
  return rig;
}

/** Goes in, with a new login where another test has ended the session. */
async function enter({ page, complaints }: Visitor, url: string, user: TestUser): Promise<void> {
  await page.goto(`${url}/overview`);
  const inside = page.getByRole("navigation", { name: "Pages" });
  const door = page.getByRole("button", { name: "Log in", exact: true });
  await inside.or(door).first().waitFor();
  if ((await door.count()) === 0) return;
  await door.click();
  // The provider may know them still, and asks nobody then.
  const choice = page.getByRole("button", { name: `Log in as ${user}` });
  await choice.or(inside).first().waitFor();
  if ((await choice.count()) > 0) await choice.click();
  await inside.waitFor();
  // Of the session that had ended.
  complaints.splice(0);
}

function started<T>(part: T | null): T {
  if (part === null) throw new Error("the rig is asked for something before it has started");
  return part;
}
