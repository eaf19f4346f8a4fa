/** The receipt of a pending transaction, in a browser. */

import { expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, open, revealedKey } from "../support/chromium.ts";

const AGAIN_MS = 2000;
const IN_FLIGHT = { state: "in_flight", slot: null, slots: null, error: null, known_us: null };

const fixture = useBrowser();

it("of two regions is fetched by one request per poll, unchanged parts stay open", async () => {
  const { page, ...grace } = await fixture.page("Grace");
  const { signature } = await fixture.site.submit(await revealedKey({ page, ...grace }));
  const path = `/api/v1/transactions/${signature}`;
  const response = await (await page.request.get(fixture.site.url + path)).json();
  const [{ receipt }] = response.receipts;
  // As it was at first, and does not become more.
  const landing = { ...receipt.landing, ...IN_FLIGHT };
  const timings = { decoded_us: 10, first_sent_us: 20, first_acked_us: 30 };
  const early = { ...receipt, landing, timings, state: "acknowledged", leaders: [] };
  const receipts = ["tokyo", "oslo"].map((edge) => ({ edge, receipt: early }));
  let asked = 0;
  await page.route(`**${path}`, async (route) => {
    asked += 1;
    await route.fulfill({ json: { ...response, receipts } });
  });
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(1);
  await open({ page, ...grace }, "Transactions");
  await page.getByRole("textbox", { name: "Signature" }).fill(signature);
  await page.getByRole("button", { name: "Look up" }).click();
  await page.getByRole("region", { name: "Receipt of oslo" }).waitFor();
  const facts = page.getByText("All that is known");
  expect(await facts.count()).toBe(2);
  await facts.first().click();
  for (let times = 2; times <= 5; times += 1) {
    const answered = page.waitForResponse(`**${path}`);
    await page.clock.runFor(AGAIN_MS);
    await answered;
    // An answer later, what else was to be asked has been.
    await page.evaluate("fetch('/api/v1/site').then((answer) => answer.text())");
  }
  expect(asked).toBe(5);
  expect(await page.locator("details[open]").count()).toBe(1);
});

it("stays while a poll fails or its region does not respond, and is fetched again", async () => {
  const grace = await fixture.page("Grace");
  const { page } = grace;
  const { signature } = await fixture.site.submit(await revealedKey(grace));
  const path = `/api/v1/transactions/${signature}`;
  const response = await (await page.request.get(fixture.site.url + path)).json();
  const [{ receipt }] = response.receipts;
  const answerOf = (landing: object) => ({
    json: { ...response, receipts: [{ edge: "oslo", receipt: { ...receipt, landing } }] },
  });
  const early = answerOf({ ...receipt.landing, ...IN_FLIGHT });
  const unknown = { reason: "not_found", message: "no edge has it", unreachable: ["oslo"] };
  const landed = answerOf({ ...receipt.landing, state: "landed", slot: 9, known_us: 5 });
  const missing = { status: 404, json: { error: unknown } };
  const busy = { reason: "rate_limited", message: "too many attempts, the next one in 1 s" };
  const limited = { status: 429, json: { error: busy } };
  const answers = [early, null, { status: 502, body: "" }, limited, missing, early, landed];
  await page.route(`**${path}`, async (route) => {
    const answer = answers.shift() ?? null;
    await (answer === null ? route.abort() : route.fulfill(answer));
  });
  allowComplaints(grace, /ERR_FAILED|502|429|404/);
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(1);
  await page.goto(`${fixture.site.url}/transactions?signature=${signature}`);
  await page.getByRole("region", { name: "Receipt of oslo" }).waitFor();
  for (const said of [/cannot be reached/, /HTTP 502/, /many attempts/, /No response from oslo/]) {
    await page.clock.runFor(AGAIN_MS);
    await page.getByText(said).waitFor();
    expect(await page.getByRole("region", { name: "Receipt of oslo" }).count()).toBe(1);
  }
  await page.clock.runFor(AGAIN_MS);
  await page.getByText("No response from oslo").waitFor({ state: "detached" });
  await page.clock.runFor(AGAIN_MS);
  await page.getByText(/^Landed in slot 9/).waitFor();
});

it("of a transaction that landed before it arrived states that", async () => {
  const grace = await fixture.page("Grace");
  const { signature } = await fixture.site.submit(await revealedKey(grace));
  const path = `/api/v1/transactions/${signature}`;
  const response = await (await grace.page.request.get(fixture.site.url + path)).json();
  const [{ edge, receipt }] = response.receipts;
  const landing = { ...receipt.landing, state: "landed", slot: 9, slots: 0, known_us: 5 };
  const told = { edge, receipt: { ...receipt, state: "landed", received_slot: 12, landing } };
  await grace.page.route(`**${path}`, async (route) => {
    await route.fulfill({ json: { ...response, receipts: [told] } });
  });
  await grace.page.goto(`${fixture.site.url}/transactions?signature=${signature}`);
  await grace.page.getByText(/^Landed in slot 9, before it came here \(12\)/).waitFor();
});
