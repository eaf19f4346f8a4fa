/**
 * Runs Debian's Chromium on the dashboard: with a new profile each time, and recording every
 * complaint of the browser, so that a test can assert that there were none.
 */

import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
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

/** Timeout of a step on a busy machine. */
export const PATIENCE_MS = 60_000;

/** The test users of the sandbox's provider; Ada is an operator. */
export type TestUser = "Ada" | "Grace";

export interface Visitor {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Messages of the console, the content security policy, and uncaught errors. */
  readonly complaints: string[];
  /** Expected messages; see `allowComplaints`. */
  readonly allowed: RegExp[];
}

export async function startChromium(): Promise<Browser> {
  return await chromium.launch({ executablePath: "/usr/bin/chromium", args: ARGUMENTS });
}

/** A new browser: no cookies, no storage. */
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
 * Allows this complaint: the browser reports each rejected request itself, immediately or shortly
 * after.
 */
export function allowComplaints(visitor: Visitor, pattern: RegExp): void {
  visitor.allowed.push(pattern);
}

/** The complaints that the test does not allow. */
export function unexpectedComplaints({ complaints, allowed }: Visitor): readonly string[] {
  return complaints.filter((text) => !allowed.some((pattern) => pattern.test(text)));
}

/** Logs in at the sandbox's provider; ends on the requested page. */
export async function logIn({ page }: Visitor, url: string, user: TestUser): Promise<void> {
  await page.goto(url);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("button", { name: `Log in as ${user}` }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Opens a page through the navigation. */
export async function open({ page }: Visitor, name: string): Promise<void> {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

/** Reveals the key on the Connect page. */
export async function revealedKey(visitor: Visitor): Promise<string> {
  await open(visitor, "Connect");
  await visitor.page.getByRole("button", { name: "Reveal" }).click();
  const key = visitor.page.getByTestId("key").filter({ hasText: /^td_[a-z]+_\w{20,}$/ });
  return await key.innerText();
}

/** Begins *Add a public key*; returns the dialog, and the text that the page asks to sign. */
export async function challengeFor(
  visitor: Visitor,
  publicKey: string,
): Promise<{ readonly dialog: Locator; readonly text: string }> {
  const { page } = visitor;
  await open(visitor, "Keys");
  await page.getByRole("button", { name: "Add a public key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Public key").fill(publicKey);
  await dialog.getByRole("button", { name: "Continue" }).click();
  return { dialog, text: await page.getByTestId("challenge").innerText() };
}

/** The page of a visitor without a login. */
export async function atTheDoor({ page }: Visitor): Promise<void> {
  await page.getByRole("button", { name: "Log in", exact: true }).waitFor();
  await page.getByRole("heading", { name: "Transactions that reach the leader" }).waitFor();
}
