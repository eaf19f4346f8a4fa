/** Vaults for tests. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type KeyEncryption, openVault } from "../../src/control/vault.ts";
import { formatToml } from "../../src/runtime/toml.ts";

/** A vault with the key-encryption keys of a text `id:base64,id:base64`. */
export function vaultOf(text: string): KeyEncryption {
  const keys = text.split(",").map((pair) => {
    const [id = "", key = ""] = pair.trim().split(":", 2);
    return { id, key };
  });
  const folder = mkdtempSync(join(tmpdir(), "vault-"));
  try {
    const path = join(folder, "vault.toml");
    writeFileSync(path, formatToml({ keys }), { mode: 0o600 });
    return openVault(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
