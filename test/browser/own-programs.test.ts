/**
 * The Connect programs without example transactions, as outside the sandbox: with the user's own
 * transaction in a file, or the key pair of Solana's own tools.
 */

import { describe, expect, it } from "vitest";
import { useBrowser } from "../support/browser-fixture.ts";
import { revealedKey } from "../support/chromium.ts";
import { type Around, PROGRAMS, run } from "../support/programs.ts";
import { newKeypair } from "../support/transactions.ts";

const SIGNATURE = /[1-9A-HJ-NP-Za-km-z]{86,88}/;
const fixture = useBrowser({ control: { example_transaction_url: null } });

/** A funded key pair in the format of `solana-keygen`. */
function keyPair(): Uint8Array {
  const { seed, publicKey, address } = newKeypair();
  fixture.site.fund(address);
  return Buffer.from(JSON.stringify([...seed, ...publicKey]));
}

describe("outside of the sandbox", () => {
  it.each(PROGRAMS)("the program for %s lands the reader's own transaction", async (name) => {
    const grace = await fixture.page("Grace");
    const { page } = grace;
    await revealedKey(grace);
    await page.getByRole("tab", { name }).click();
    const text = await page.getByRole("region", { name: `Program for ${name}` }).innerText();
    expect(text).not.toContain("irdrop");
    const around: Around = {
      files: { "transaction.bin": fixture.site.transaction(), "id.json": keyPair() },
      env: { KEYPAIR: "id.json" },
    };
    const output = await run(name, text, around);
    const signature = SIGNATURE.exec(output)?.[0];
    if (signature === undefined) throw new Error(`${name} printed no signature: ${output}`);
    await page.goto(`${fixture.site.url}/transactions?signature=${signature}`);
    await page.getByText(/^Landed in slot \d+/).waitFor();
  });
});
