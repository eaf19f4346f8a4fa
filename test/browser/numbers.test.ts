/**
 * Overview compared with what was sent: a known mix of transactions by two keys, counted by the
 * sender from the responses, and read from the page over each range, by reason, by region and by
 * key.
 */

import { beforeAll, describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import type { Visitor } from "../support/chromium.ts";
import { buildTransaction } from "../support/transactions.ts";

const ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;
const PLAIN = { expiresAtMs: null, cidrs: [], ratePerSecond: null, burst: null } as const;
const SPANS = [
  ["Hour", "the last hour"],
  ["Day", "the last day"],
  ["Month", "the last 30 days"],
] as const;
const LANDED = 17;
const SLOW_TRIES = 9;

const fixture = useBrowser();
/** Counts from the responses: accepted, and rejected by reason. */
const bot = new Map<string, number>();
const slow = new Map<string, number>();

async function submit(told: Map<string, number>, key: string, body?: Uint8Array): Promise<void> {
  const { text } = await fixture.site.submit(key, body);
  const { success, reason } = JSON.parse(text);
  const outcome = success === true ? "accepted" : String(reason);
  told.set(outcome, (told.get(outcome) ?? 0) + 1);
}

/** A complete transaction with its tip, whose signature signs something else. */
function wrongSignature(): Uint8Array {
  const bytes = Uint8Array.from(fixture.site.transaction());
  bytes[10] = (bytes[10] ?? 0) ^ 1;
  return bytes;
}

function sum(told: ReadonlyMap<string, number>): number {
  return [...told.values()].reduce((all, one) => all + one, 0);
}

const accepted = () => (bot.get("accepted") ?? 0) + (slow.get("accepted") ?? 0);
const refused = () => sum(bot) + sum(slow) - accepted();

beforeAll(async () => {
  await fixture.visitor("Grace");
  const { keys } = fixture.site.store;
  const account = await fixture.site.accountOf("Grace");
  const make = async (label: string, limit: object) => {
    const made = await keys.create(account, { ...PLAIN, label, ...limit }, ACTOR);
    if (made.kind === "refused") throw new Error(made.detail);
    const { token } = made.value;
    // Repeats until the edge knows the key; the last one is counted.
    while ((await fixture.site.submit(token, new Uint8Array(1))).status === 401);
    return token;
  };
  const [first, second] = [
    await make("bot", {}),
    await make("slow", { ratePerSecond: 1, burst: 2 }),
  ];
  // The transactions that showed that each key is known.
  for (const told of [bot, slow]) told.set("undecodable", 1);
  for (let count = 0; count < LANDED; count += 1) await submit(bot, first);
  for (let count = 0; count < 3; count += 1) await submit(bot, first, new Uint8Array(200));
  for (let count = 0; count < 4; count += 1) await submit(bot, first, buildTransaction().bytes);
  for (let count = 0; count < 2; count += 1) await submit(bot, first, wrongSignature());
  await Promise.all(Array.from({ length: SLOW_TRIES }, () => submit(slow, second)));
});

/** The content of a tile: its number, and the text below it. */
async function tile({ page }: Visitor, name: string): Promise<readonly string[]> {
  const found = page.locator(".tile").filter({ has: page.getByText(name, { exact: true }) });
  return await found.locator("dd").allInnerTexts();
}

/** The cells of a row of a table. */
async function cells({ page }: Visitor, table: string, row: RegExp): Promise<readonly string[]> {
  const found = page.getByRole("table", { name: table }).getByRole("row", { name: row });
  return (await found.locator("td").allInnerTexts()).slice(0, 3);
}

describe("what Overview shows", () => {
  it("matches what was sent, live and over an hour, a day and a month", async () => {
    expect([...bot.keys()]).toEqual([
      "undecodable",
      "accepted",
      "tip_missing",
      "signature_invalid",
    ]);
    expect(slow.get("rate_limited")).toBeGreaterThan(0);
    const grace = await fixture.page("Grace");
    const { page } = grace;
    const all = accepted() + refused();
    const ended = [`${accepted()} of ${accepted()} ended`];
    await expect.poll(async () => (await tile(grace, "Landed")).slice(1)).toEqual(ended);
    for (const [span, words] of SPANS) {
      await page.getByRole("radio", { name: span, exact: true }).check();
      await page.getByText(`In ${words} ${accepted()} sent`).waitFor();
      const [sent, ofAll] = await tile(grace, "Sent");
      expect([span, sent, ofAll]).toEqual([
        span,
        String(accepted()),
        expect.stringContaining(`of ${all} requests, `),
      ]);
      expect(await tile(grace, "Landed")).toEqual(["100 %", ...ended]);
      expect((await tile(grace, "Refused"))[0]).toBe(String(refused()));
      const row = [String(accepted()), "100 %", String(refused())];
      expect(await cells(grace, "Numbers by region", /^local/)).toEqual(row);
      for (const [key, told] of [
        ["bot", bot],
        ["slow", slow],
      ] as const) {
        const passed = told.get("accepted") ?? 0;
        expect(await cells(grace, "Numbers by key", new RegExp(`^${key}`))).toEqual([
          String(passed),
          "100 %",
          String(sum(told) - passed),
        ]);
      }
    }
  });

  it("names each reason with its count", async () => {
    const grace = await fixture.page("Grace");
    const list = grace.page.getByRole("region", { name: "Not landed, by reason" });
    await list.waitFor();
    const told = new Map<string, number>();
    for (const one of [bot, slow]) {
      for (const [reason, count] of one) {
        if (reason !== "accepted") told.set(reason, (told.get(reason) ?? 0) + count);
      }
    }
    const shown = async () => {
      const lines = await list.locator(".line").allInnerTexts();
      return new Map(
        lines.map((line) => line.split("\n")).map(([name, count]) => [name, Number(count)]),
      );
    };
    await expect.poll(shown).toEqual(told);
  });

  it("matches the slots of the receipts", async () => {
    const grace = await fixture.page("Grace");
    const slots = await grace.page.evaluate<number[]>(`
      fetch("/api/v1/transactions?limit=100").then((answer) => answer.json())
        .then(({ transactions }) => transactions.map(({ landing }) => landing.slots))`);
    expect(slots).toHaveLength(accepted());
    slots.sort((a, b) => a - b);
    const at = (share: number) => slots[Math.ceil(slots.length * share) - 1];
    const figure = (text: string) => Number(/\d+/.exec(text.replace(/^p50; p99/, "")));
    const shown = async () => (await tile(grace, "Slot delta")).map(figure);
    await expect.poll(shown).toEqual([at(0.5), at(0.99)]);
  });

  it("can be filtered by key", async () => {
    const grace = await fixture.page("Grace");
    const picker = grace.page.getByRole("combobox", { name: "Key" });
    const option = picker.locator("option", { hasText: /^bot/ });
    await picker.selectOption(await option.getAttribute("value"));
    await expect.poll(async () => (await tile(grace, "Sent"))[0]).toBe(String(LANDED));
    expect(await tile(grace, "Landed")).toEqual(["100 %", `${LANDED} of ${LANDED} ended`]);
    expect((await tile(grace, "Refused"))[0]).toBe(String(sum(bot) - LANDED));
  });
});
