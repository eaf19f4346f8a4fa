/**
 * The vault of a running process, which follows its file. Before sealing or opening a text it
 * checks the file and reads it again if it has changed. A process that runs during a key rotation
 * therefore seals with the new key as soon as the file has it, and opens what another process
 * resealed. An unreadable file changes nothing: the last keys stay in use, and the log reports it
 * once per state of the file.
 */

import { statSync } from "node:fs";
import { messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { type KeyEncryption, openVault } from "./vault.ts";

/** Throws `SetupError` if the file is invalid now; later errors are logged. */
export function followVaultFile(path: string, log: Log): KeyEncryption {
  let seen = stateOf(path);
  let vault = openVault(path);

  function latest(): KeyEncryption {
    const state = stateOf(path);
    if (state === seen) return vault;
    seen = state;
    try {
      vault = openVault(path);
      log.info({ ids: vault.ids }, "the vault file was read again");
    } catch (error) {
      log.error({ err: error }, "the vault file cannot be read; the previous keys stay in use");
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

/** Identifies a state of the file; without a file, the error code. */
function stateOf(path: string): string {
  try {
    const stat = statSync(path, { bigint: true });
    return `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
  } catch (error) {
    return messageOf(error);
  }
}
