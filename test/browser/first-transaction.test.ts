/**
 * The main purpose of the dashboard, in a real browser with the real service: from a first login to
 * a landed transaction, using only what the screen shows.
 */

import { beforeEach, describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { allowComplaints, open, revealedKey, type Visitor } from "../support/chromium.ts";
import { PROGRAMS, run } from "../support/programs.ts";

const SIGNATURE = /[1-9A-HJ-NP-Za-km-z]{86,88}/;

const fixture = useBrowser();
let grace: Visitor;
beforeEach(async () => {
  grace = await fixture.page("Grace");
});

/** A signature as the list shows it. */
function ends(signature: string): string {
  return `${signature.slice(0, 8)}…${signature.slice(-8)}`;
}

async function textOf(name: string): Promise<string> {
  return await grace.page.getByRole("region", { name: `Program for ${name}` }).innerText();
}

async function programText(name: string): Promise<string> {
  await grace.page.getByRole("tab", { name }).click();
  return await textOf(name);
}

/** The signature in the output of a program. */
async function sent(name: (typeof PROGRAMS)[number]): Promise<string> {
  const output = await run(name, await programText(name));
  const signature = SIGNATURE.exec(output)?.[0];
  if (signature === undefined) throw new Error(`${name} printed no signature: ${output}`);
  return signature;
}

/** The text that Ctrl+V pastes into an editor. */
async function pasted(): Promise<string> {
  const editor = await grace.context.newPage();
  await editor.setContent("<textarea></textarea>");
  await editor.locator("textarea").focus();
  await editor.keyboard.press("Control+V");
  const text = await editor.locator("textarea").inputValue();
  await editor.close();
  return text;
}

describe("the page Connect", () => {
  it.each(PROGRAMS)("offers a program for %s that lands a transaction as pasted", async (name) => {
    await revealedKey(grace);
    const signature = await sent(name);
    await grace.page.locator(".next").getByRole("link", { name: "Transactions" }).click();
    await grace.page.getByRole("link", { name: ends(signature) }).waitFor();
    await grace.page.getByRole("textbox", { name: "Signature" }).fill(signature);
    await grace.page.getByRole("button", { name: "Look up" }).click();
    const receipt = grace.page.getByRole("region", { name: "Receipt of local" });
    await receipt.getByText("Landed", { exact: true }).waitFor();
    expect(await receipt.getByText(/^Landed in slot \d+/).count()).toBe(1);
  });

  it("measures the round trip to each region from the browser", async () => {
    await open(grace, "Connect");
    const row = grace.page.getByRole("row", { name: /local/ });
    // A running measurement is shown as pending; it may still end as unreachable.
    await row.locator("span:not(.soft)", { hasText: /^[\d.]+ (?:µs|ms)$/ }).waitFor();
    expect(await row.getByText(fixture.site.edgeUrl).count()).toBe(1);
  });

  it("selects the region that responds, and fills its address in", async () => {
    const { page } = grace;
    await page.route("**/api/v1/site", async (route) => {
      const site = await (await route.fetch()).json();
      const away = { name: "away", url: `${fixture.site.edgeUrl}/away`, quic: null };
      await route.fulfill({ json: { ...site, regions: [away, ...site.regions] } });
    });
    await page.goto(`${fixture.site.url}/connect`);
    await page.getByRole("row", { name: /away/ }).getByText("Not reachable").waitFor();
    await expect.poll(() => page.getByRole("radio", { name: "local" }).isChecked()).toBe(true);
    const text = await programText("Python");
    expect(text).toContain(`"${fixture.site.edgeUrl}/api/v1/sendRawTransaction"`);
    // The browser reports the unreachable region, and nothing else.
    allowComplaints(grace, /404|CORS/);
  });

  it("shows QUIC for regions that accept it, and for no other", async () => {
    await open(grace, "Connect");
    const tabs = grace.page.getByRole("tab");
    await tabs.first().waitFor();
    expect(await tabs.allInnerTexts()).toEqual([...PROGRAMS.slice(0, 3), "Rust", "Python"]);
    await grace.page.route("**/api/v1/site", async (route) => {
      const site = await (await route.fetch()).json();
      const regions = [{ ...site.regions[0], quic: "203.0.113.7:8009" }];
      await route.fulfill({ json: { ...site, regions } });
    });
    await grace.page.reload();
    const key = await revealedKey(grace);
    await grace.page.getByRole("tab", { name: "QUIC" }).click();
    await grace.page.getByText("takes transactions over QUIC at 203.0.113.7:8009").waitFor();
    const quic = { Rust: "QUIC with Rust", TypeScript: "QUIC with TypeScript", tpu: "solana-tpu" };
    const [rust, typescript, tpu] = await Promise.all(
      Object.values(quic).map((name) => textOf(name)),
    );
    for (const text of [rust, typescript]) {
      expect(text).toContain('"203.0.113.7:8009"');
      expect(text).toContain(`"${key}"`);
    }
    expect(tpu).toContain('"203.0.113.7:8009"');
    expect(tpu).not.toContain(key);
  });

  it("shows no program for QUIC where the chosen region has none", async () => {
    await grace.page.route("**/api/v1/site", async (route) => {
      const site = await (await route.fetch()).json();
      const other = { ...site.regions[0], name: "other", quic: "203.0.113.7:8009" };
      await route.fulfill({ json: { ...site, regions: [...site.regions, other] } });
    });
    await grace.page.goto(`${fixture.site.url}/connect`);
    // The page selects the nearest one by itself once it has measured both.
    for (const name of [/local/, /other/]) {
      const row = grace.page.getByRole("row", { name });
      await row.locator("span:not(.soft)", { hasText: /^[\d.]+ (?:µs|ms)$/ }).waitFor();
    }
    await grace.page.getByRole("radio", { name: "local" }).check();
    await grace.page.getByRole("tab", { name: "QUIC" }).click();
    await grace.page.getByText("does not take transactions over QUIC").waitFor();
    expect(
      await grace.page.getByRole("tabpanel").locator("pre").filter({ visible: true }).count(),
    ).toBe(0);
    await grace.page.getByRole("radio", { name: "other" }).check();
    await grace.page.getByRole("region", { name: "Program for QUIC with Rust" }).waitFor();
  });

  it("does not copy a program that cannot run: it fills the key in first", async () => {
    const { page } = grace;
    await open(grace, "Connect");
    const fillIn = page.getByRole("button", { name: "Fill in the key" });
    const copy = page.getByRole("button", { name: "Copy the program for curl" });
    await fillIn.waitFor();
    expect(await copy.isVisible()).toBe(false);
    await fillIn.focus();
    await page.keyboard.press("Enter");
    await copy.waitFor();
    // The focused element is not replaced: the new button has the focus.
    await page.keyboard.press("Enter");
    // The button says so for 2 s only, which a busy machine may miss.
    await page.locator("#say", { hasText: /^Copied$/ }).waitFor({ state: "attached" });
    expect(await run("curl", await pasted())).toMatch(SIGNATURE);
    await page.getByRole("button", { name: "Hide" }).click();
    await fillIn.waitFor();
    expect(await copy.isVisible()).toBe(false);
  });
});

describe("the page Overview", () => {
  it("updates the numbers while it is open", async () => {
    const key = await revealedKey(grace);
    await open(grace, "Overview");
    await grace.page.getByText("Live", { exact: true }).waitFor();
    const sentTile = grace.page.locator(".tile", { hasText: "Sent" }).locator("dd").first();
    const before = (await sentTile.count()) === 0 ? 0 : Number(await sentTile.innerText());
    const count = 5;
    for (let index = 0; index < count; index += 1) {
      expect((await fixture.site.submit(key)).status).toBe(200);
    }
    // Transactions of the programs above may be counted after this check.
    const shown = async () => Number(await sentTile.innerText());
    await expect.poll(shown).toBeGreaterThanOrEqual(before + count);
    await grace.page.locator(".uplot canvas").first().waitFor();
  });
});
