/**
 * Debian's Chromium on the dashboard: a fresh profile each time, and every complaint of the browser
 * kept, so that a test can end with "and it had nothing to say".
 */

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";

const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How long a step may take on a machine that is busy with other things. */
export const PATIENCE_MS = 60_000;

/** Those whom the sandbox's provider knows; Ada is an operator. */
export type TestUser = "Ada" | "Grace";

export interface Visitor {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the console, the policy for content and uncaught errors said. */
  readonly complaints: string[];
  /** What it may say: see `allowComplaints`. */
  readonly allowed: RegExp[];
}

export async function startChromium(): Promise<Browser> {
  return await chromium.launch({ executablePath: "/usr/bin/chromium", args: ARGUMENTS });
}

/** Somebody with a browser of their own: no cookies, nothing kept. */
export async function visit(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<Visitor> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  return await newPage(context);
}

/** Another page of the same browser, with the same cookies. */
export async function newPage(context: BrowserContext): Promise<Visitor> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { page, context, complaints, allowed: [] };
}

/**
 * Lets the test end though the browser said this: of a request that a test has refused, it says so
 * itself, now or a moment later.
 */
export function allowComplaints(visitor: Visitor, pattern: RegExp): void {
  visitor.allowed.push(pattern);
}

/** What the browser said beyond what the test allows. */
export function unexpectedComplaints({ complaints, allowed }: Visitor): readonly string[] {
  return complaints.filter((text) => !allowed.some((pattern) => pattern.test(text)));
}

/** Logs in at the sandbox's provider; ends on the page that was asked for. */
export async function logIn({ page }: Visitor, url: string, user: TestUser): Promise<void> {
  await page.goto(url);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("button", { name: `Log in as ${user}` }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Goes to a page by the navigation. */
export async function open({ page }: Visitor, name: string): Promise<void> {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

/** Reveals the key that Connect shows. */
export async function revealedKey(visitor: Visitor): Promise<string> {
  await open(visitor, "Connect");
  await visitor.page.getByRole("button", { name: "Reveal" }).click();
  const key = visitor.page.getByTestId("key").filter({ hasText: /^td_[a-z]+_\w{20,}$/ });
  return await key.innerText();
}

/** The front page of somebody whom nobody knows here. */
export async function atTheDoor({ page }: Visitor): Promise<void> {
  await page.getByRole("button", { name: "Log in", exact: true }).waitFor();
  await page.getByRole("heading", { name: "Transactions that reach the leader" }).waitFor();
}
