/**
 * Key management in a browser and its effect on an edge; labels that contain markup; and hiding a
 * revealed key.
 */

import type { Locator, Route } from "playwright-core";
import { beforeEach, describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import {
  allowComplaints,
  challengeFor,
  open,
  revealedKey,
  type Visitor,
} from "../support/chromium.ts";
import { lookAt } from "../support/look.ts";
import { createSigner } from "../support/signer.ts";

const HOSTILE = `"><img src=x onerror="alert(1)"><script>alert(2)</script>`;
const SYSTEM_ACTOR = { kind: "system", accountId: null, address: null, userAgent: null } as const;

const fixture = useBrowser();
let grace: Visitor;
beforeEach(async () => {
  grace = await fixture.page("Grace");
});

/** The edge's response to a transaction with this key. */
async function statusOf(key: string): Promise<number> {
  return (await fixture.site.submit(key)).status;
}

/** Polls the edge until it responds like this; a key change takes a moment to arrive. */
async function untilStatus(key: string, status: number): Promise<void> {
  await expect.poll(() => statusOf(key)).toBe(status);
}

/** Creates a key on the page; returns its text. */
async function makeKey(label: string): Promise<string> {
  const { page } = grace;
  await open(grace, "Keys");
  await page.getByRole("button", { name: "Make a key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Label").fill(label);
  await dialog.getByRole("button", { name: "Make the key" }).click();
  return await newKey();
}

async function newKey(): Promise<string> {
  const key = await grace.page.getByTestId("new-key").innerText();
  await grace.page.getByRole("button", { name: "Done" }).click();
  return key;
}

describe("the page Keys", () => {
  it("creates a key that works, and revokes it", async () => {
    const key = await makeKey("to be ended");
    await untilStatus(key, 200);
    await grace.page.getByRole("button", { name: "Revoke the key to be ended" }).click();
    await grace.page.getByRole("dialog").getByRole("button", { name: "Revoke the key" }).click();
    await untilStatus(key, 401);
  });

  it("adds a public key by a signature of the text that it shows", async () => {
    const { page } = grace;
    const signer = createSigner();
    const { dialog, text } = await challengeFor(grace, signer.publicKey);
    await lookAt(page, "keys-challenge");
    await dialog.getByLabel("Signature").fill(signer.signOffchain(text));
    await dialog.getByLabel("Label").fill("over QUIC");
    await dialog.getByRole("button", { name: "Add the key" }).click();
    const card = page.locator("article", { hasText: signer.publicKey });
    await card.getByText("Works").waitFor();
    expect(await card.getByRole("button", { name: /^Rotate/ }).count()).toBe(0);
    await lookAt(page, "keys-public-key");
  });

  it("rotates a key, with an overlap or without one", async () => {
    const first = await makeKey("rotated");
    const rotate = async (overlap: string): Promise<string> => {
      await grace.page.getByRole("button", { name: "Rotate the key rotated" }).click();
      await grace.page.getByLabel("The old key works on for").selectOption(overlap);
      await grace.page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
      return await newKey();
    };
    const second = await rotate("A day");
    await untilStatus(second, 200);
    const old = grace.page.locator("article", { hasText: `td_…${first.slice(-4)}` });
    await old.getByText(`Replaced by td_…${second.slice(-4)}`).waitFor();
    expect(await old.getByRole("button", { name: /^Rotate/ }).count()).toBe(0);
    await lookAt(grace.page, "keys-replaced");
    const third = await rotate("Ends immediately");
    await untilStatus(third, 200);
    await untilStatus(second, 401);
    expect(await statusOf(first)).toBe(200);
  });

  it("links a key of an account without a login, once", async () => {
    const { accounts, keys } = fixture.site.store;
    const made = await accounts.create("old customer", "Beta", SYSTEM_ACTOR);
    if (made.kind !== "ok") throw new Error(made.detail);
    const none = { expiresAtMs: null, cidrs: [], ratePerSecond: null, burst: null };
    const key = await keys.create(made.value.id, { label: "from before", ...none }, SYSTEM_ACTOR);
    if (key.kind !== "ok") throw new Error(key.detail);
    await open(grace, "Keys");
    await grace.page.getByRole("button", { name: "Link a key" }).click();
    const dialog = grace.page.getByRole("dialog");
    await dialog.getByLabel("The key").fill(key.value.token);
    await dialog.getByRole("button", { name: "Link the key" }).click();
    await grace.page.getByRole("heading", { name: "from before" }).waitFor();
    await untilStatus(key.value.token, 200);
  });

  it("names a key without a label as what it is", async () => {
    const { keys } = fixture.site.store;
    const account = await fixture.site.accountOf("Grace");
    const none = { label: "", expiresAtMs: null, cidrs: [], ratePerSecond: null, burst: null };
    const made = await keys.create(account, none, SYSTEM_ACTOR);
    if (made.kind !== "ok") throw new Error(made.detail);
    const { token, key } = made.value;
    await untilStatus(token, 200);
    await open(grace, "Keys");
    const card = grace.page.locator("article", { hasText: key.hint });
    await card.getByRole("heading", { name: "Without a label" }).waitFor();
    await card.getByRole("button", { name: /^Rotate/ }).click();
    const dialog = grace.page.getByRole("dialog", { name: `Rotate ${key.hint}` });
    await dialog.getByRole("button", { name: "Rotate" }).click();
    await grace.page.getByText(/^td_\S+ works in every region/).waitFor();
    await grace.page.getByRole("button", { name: "Done" }).click();
    await open(grace, "Connect");
    const options = grace.page.getByLabel("Key", { exact: true }).getByRole("option");
    await expect.poll(() => options.allInnerTexts()).toContain(`Without a label (${key.hint})`);
    await open(grace, "Overview");
    const rows = grace.page.getByRole("table", { name: "Numbers by key" }).getByRole("row");
    await rows.filter({ hasText: key.hint }).getByText("Without a label").waitFor();
  });

  it("changes a key, and the edge applies the change", async () => {
    const key = await makeKey("to be changed");
    await untilStatus(key, 200);
    const { page } = grace;
    const card = page.locator("article", { hasText: "to be changed" });
    /** Opens the dialog, runs `act` in it, and saves. */
    const change = async (act: (dialog: Locator) => Promise<unknown>): Promise<void> => {
      await card.getByRole("button", { name: /^Change the key/ }).click();
      const dialog = page.getByRole("dialog");
      await act(dialog);
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    const from = (dialog: Locator) => dialog.getByLabel("Only from these addresses");

    await change((dialog) => from(dialog).fill("203.0.113.0/24\n2001:db8::/32"));
    await card.getByText("203.0.113.0/24 2001:db8::/32").waitFor();
    await untilStatus(key, 401);
    await change(async (dialog) => {
      await lookAt(page, "dialog-change-key");
      await from(dialog).fill("203.0.113.0/24, 127.0.0.0/8");
    });
    await untilStatus(key, 200);

    await change(async (dialog) => {
      await dialog.getByLabel("Requests a second").fill("1");
      await dialog.getByLabel("Burst").fill("2");
      await dialog.getByLabel("Expires").selectOption("In a day");
      await dialog.getByLabel("Label").fill("to be changed, slowly");
    });
    await card.getByText("1 request a second, a burst of 2").waitFor();
    expect(await card.getByRole("heading").innerText()).toBe("to be changed, slowly");
    await card.getByText(/^in (?:23|24) hr\.$|^tomorrow$/).waitFor();
    // Three concurrent requests are one more than the key's burst.
    const statuses = async () => await Promise.all([1, 2, 3].map(() => statusOf(key)));
    await expect.poll(statuses).toContain(429);

    await change(async (dialog) => {
      await dialog.getByLabel("Requests a second").fill("");
      await dialog.getByLabel("Burst").fill("");
      await dialog.getByLabel("Expires").selectOption("Never");
      await from(dialog).fill("");
    });
    await card.getByText("The plan's").waitFor();
    await card.getByText("Any address").waitFor();
    await expect.poll(statuses).toEqual([200, 200, 200]);
  });

  it("keeps what another browser has changed while the dialog was open", async () => {
    await makeKey("of two browsers");
    const { page } = grace;
    const card = page.locator("article", { hasText: "of two browsers" });
    await card.getByRole("button", { name: /^Change the key/ }).click();
    const { keys } = fixture.site.store;
    const account = await fixture.site.accountOf("Grace");
    const limits = { cidrs: ["203.0.113.0/24"], ratePerSecond: 5, burst: 10 };
    const changes = { ...limits, expiresAtMs: Date.now() + 40 * 86_400_000 };
    const id = (await card.getAttribute("data-key")) ?? "";
    expect(await keys.change(account, id, changes, SYSTEM_ACTOR)).toMatchObject({ kind: "ok" });
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Label").fill("of two browsers, renamed");
    await dialog.getByRole("button", { name: "Save" }).click();
    await card.getByRole("heading", { name: "of two browsers, renamed" }).waitFor();
    expect(await keys.byId(account, id)).toMatchObject(changes);
  });

  it("tells in the audit what each changed field was before", async () => {
    await makeKey("audited");
    const { page } = grace;
    const card = page.locator("article", { hasText: "audited" });
    const from = async (networks: string): Promise<void> => {
      await card.getByRole("button", { name: /^Change the key/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Only from these addresses").fill(networks);
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await from("198.51.100.7");
    await from("");
    await open(grace, "Audit");
    await page.getByText("cidrs 198.51.100.7/32 → none, label audited").waitFor();
    await page.getByText("cidrs none → 198.51.100.7/32, label audited").waitFor();
  });

  it("tells why a revocation failed, also if its dialog was closed meanwhile", async () => {
    await makeKey("to be kept");
    const { page } = grace;
    const error = { reason: "unavailable", message: "the database does not answer now" };
    const held: Route[] = [];
    await page.route("**/api/v1/keys/*/revoke", (route) => void held.push(route));
    await page.getByRole("button", { name: "Revoke the key to be kept" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Revoke the key" }).click();
    await expect.poll(() => held.length).toBe(1);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await held[0]?.fulfill({ status: 503, json: { error } });
    await dialog.getByText("The database does not answer now.").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    allowComplaints(grace, /503/);
  });

  it("rejects an incomplete limit, and one above the plan's", async () => {
    const { page } = grace;
    await open(grace, "Keys");
    await page.getByRole("button", { name: "Change the key First key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Requests a second").fill("1000000");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("A key's own limit needs both").waitFor();
    await dialog.getByLabel("Burst").fill("5");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText(/plan/).waitFor();
    await lookAt(page, "dialog-change-key-refused");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    // The browser reports the rejected requests, and nothing else.
    allowComplaints(grace, /400/);
  });

  it("shows an invalid restriction next to its field", async () => {
    await open(grace, "Keys");
    await grace.page.getByRole("button", { name: "Make a key" }).click();
    const dialog = grace.page.getByRole("dialog");
    await dialog.getByLabel("Label").fill("restricted");
    await dialog.getByLabel("Only from these addresses").fill("not-a-network");
    await dialog.getByRole("button", { name: "Make the key" }).click();
    await dialog.locator(".wrong, .note.bad").first().waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    // The browser reports the rejected request, and nothing else.
    expect(grace.complaints.splice(0)).toEqual([expect.stringContaining("400")]);
  });

  it("shows a label with markup as plain text on every page", async () => {
    const label = HOSTILE.slice(0, 64);
    await makeKey(label);
    await grace.page.getByRole("heading", { name: label }).waitFor();
    for (const name of ["Overview", "Connect", "Audit", "Keys"]) {
      await open(grace, name);
      await grace.page.waitForLoadState("networkidle").catch(() => null);
      expect(await grace.page.locator('img[src="x"], main script').count()).toBe(0);
    }
  });
});

describe("a revealed key", () => {
  it("hides after half a minute", async () => {
    // Only the test advances the time in this browser.
    grace = await fixture.visitor("Grace");
    await grace.page.clock.install();
    await grace.page.clock.pauseAt(Date.now() + 60_000);
    const key = await revealedKey(grace);
    const box = grace.page.getByTestId("key");
    await grace.page.clock.fastForward(29_000);
    expect(await box.innerText()).toBe(key);
    await grace.page.clock.fastForward(2000);
    expect(await box.innerText()).toMatch(/^td_…\w{4}$/);
    expect(await grace.page.getByText(key).count()).toBe(0);
  });

  it("is hidden after leaving the page and coming back", async () => {
    const key = await revealedKey(grace);
    await open(grace, "Keys");
    await grace.page.goBack();
    await grace.page.getByRole("heading", { level: 1, name: "Connect" }).waitFor();
    expect(await grace.page.getByText(key).count()).toBe(0);
    expect(await grace.page.content()).not.toContain(key);
  });
});
