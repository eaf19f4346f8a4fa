/**
 * The vault of a running process: it follows its file. Before a text is sealed or opened the file
 * is looked at, and read again if it is another one by now. So a process that runs while the keys
 * are rotated seals with the new one from the moment it stands there, and opens what was sealed
 * anew by another process. A file that cannot be read changes nothing: the keys that were read last
 * stay, and the log says so once for each state of the file.
 */

import { statSync } from "node:fs";
import type { Log } from "../core/log.ts";
import { type KeyEncryption, openVault } from "./vault.ts";

/** A `SetupError` says what is wrong with the file now; later on the log does. */
export function followVaultFile(path: string, log: Log): KeyEncryption {
  let seen = stateOf(path);
  let vault = openVault({ kind: "file", path });

  function latest(): KeyEncryption {
    const state = stateOf(path);
    if (state === seen) return vault;
    seen = state;
    try {
      vault = openVault({ kind: "file", path });
      log.info({ ids: vault.ids }, "the vault file was read again");
    } catch (error) {
      log.error({ err: error }, "the vault file cannot be read, the keys read before stay");
    }
    return vault;
  }

  return {
    get activeId() {
      return latest().activeId;
    },
    get ids() {
      return latest().ids;
    },
    seal: (text, owner) => latest().seal(text, owner),
    open: (sealed, owner) => latest().open(sealed, owner),
  };
}

/** What tells one state of the file from the next; where there is none to be seen, why. */
function stateOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
