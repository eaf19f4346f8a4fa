/** The status badge of Overview while live numbers are unavailable. */

import { afterEach, describe, expect, it } from "vitest";
import { EVENT_STREAMS_PER_ACCOUNT_MAX } from "../../src/control/limits.ts";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, open, revealedKey, type Visitor } from "../support/chromium.ts";
import { lookAt } from "../support/look.ts";

const fixture = useBrowser();
let others = new AbortController();
// Also where a test fails, which runs once more then.
afterEach(async () => {
  others.abort();
  await fixture.site.setDatabaseAway(false);
});

/** Opens event streams like other pages of this browser, up to the limit. */
async function takeStreams({ context }: Visitor, signal: AbortSignal): Promise<void> {
  const cookies = await context.cookies(fixture.site.url);
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  for (let count = 0; count <= EVENT_STREAMS_PER_ACCOUNT_MAX; count += 1) {
    const response = await fetch(`${fixture.site.url}/api/v1/live`, {
      headers: { cookie },
      signal,
    });
    if (response.status === 429) return;
    expect(response.status).toBe(200);
  }
  throw new Error("one account may open more streams than its share");
}

describe("the live numbers", () => {
  it("are polled while too many pages are open, and live again after", async () => {
    const grace = await fixture.page("Grace");
    const { page } = grace;
    const key = await revealedKey(grace);
    others = new AbortController();
    const badge = page.getByRole("status").filter({ hasText: /^(?:Live|Every 10 s)$/ });
    // A left page may release its stream late; then the next page gets it.
    const told = async () => {
      await page.goto("about:blank");
      await takeStreams(grace, others.signal);
      await page.goto(`${fixture.site.url}/overview`);
      return await badge.innerText();
    };
    await expect.poll(told).toBe("Every 10 s");
    expect((await fixture.site.submit(key)).status).toBe(200);
    // The page may be live by now: a left page has released its stream.
    await page.locator(".tile", { hasText: "Sent" }).waitFor();
    others.abort();
    await page.getByText("Live", { exact: true }).waitFor();
    // The browser reports each rejected stream, and nothing else.
    allowComplaints(grace, /429/);
  });

  it("show the last update's time while the database is unreachable, and recover", async () => {
    const grace = await fixture.page("Grace");
    const { page } = grace;
    const key = await revealedKey(grace);
    expect((await fixture.site.submit(key)).status).toBe(200);
    await open(grace, "Overview");
    await page.getByText("Live", { exact: true }).waitFor();
    await page.locator(".tile", { hasText: "Sent" }).waitFor();
    await fixture.site.setDatabaseAway(true);
    await page.getByRole("status").filter({ hasText: "Not updated" }).waitFor();
    await page.getByText(/^Last updated (?:now|\d+ sec\. ago)$/).waitFor();
    await lookAt(page, "overview-not-updated");
    await fixture.site.setDatabaseAway(false);
    await page.getByText("Live", { exact: true }).waitFor();
    expect(await page.getByText("Last updated").count()).toBe(0);
  });

  it("are not shown as live once the stream is silent, which is opened again", async () => {
    const { page } = await fixture.page("Grace");
    await page.addInitScript(SILENT_STREAMS);
    await page.clock.install();
    await page.goto(`${fixture.site.url}/overview`);
    const opens = "streams.at(-1).dispatchEvent(new Event('open'))";
    await expect.poll(() => page.evaluate("streams.length")).toBe(1);
    await page.evaluate(opens);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.clock.runFor(60_000);
    expect(await page.evaluate("streams.length")).toBe(1);
    await page.clock.runFor(60_000);
    await page.getByText("Reconnecting", { exact: true }).waitFor();
    await page.getByText(/^Last updated/).waitFor();
    expect(await page.evaluate("streams.map(({ readyState }) => readyState)")).toEqual([2, 1]);
    await page.evaluate(opens);
    await page.getByText("Live", { exact: true }).waitFor();
  });

  it("end when the session ended while the stream was interrupted", async () => {
    const grace = await fixture.page("Grace");
    await grace.page.route("**/api/v1/live", (route) => route.fulfill({ status: 401 }));
    await grace.page.goto(`${fixture.site.url}/overview`);
    await grace.page.getByText("Logged out", { exact: true }).waitFor();
    await grace.page.getByText("This session has ended. A login leads back here.").waitFor();
    allowComplaints(grace, /401/);
  });
});

/** Streams on which nothing arrives, as on a connection that the other side lost unnoticed. */
const SILENT_STREAMS = `
  globalThis.streams = [];
  globalThis.EventSource = class extends EventTarget {
    static CLOSED = 2;
    readyState = 1;
    constructor() {
      super();
      streams.push(this);
    }
    close() {
      this.readyState = 2;
    }
  };`;
