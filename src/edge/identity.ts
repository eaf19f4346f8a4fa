/**
 * The identity that leaders see: read when an edge starts, and again on demand. A broken or missing
 * file changes nothing. No byte of a key appears in any message or log line.
 */

import { readFileSync } from "node:fs";
import { encodeBase58 } from "../core/encoding.ts";
import { codeOf, SetupError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Engine } from "../engine/engine.ts";
import { freshIdentity, type Identity, identityOfJson } from "../send/identity.ts";

export interface IdentityHolder {
  readonly identity: Identity;
  /** Reads the file again; does nothing without one. @throws SetupError */
  reload(): void;
}

/** The identity in a file; without a file a fresh, unstaked one. @throws SetupError */
export function readIdentity(path: string | null): Identity {
  if (path === null) return freshIdentity();
  try {
    return identityOfJson(readFileSync(path, "utf8"));
  } catch (cause) {
    // Neither kind of message contains the file's content.
    const why = cause instanceof SetupError ? cause.message : unreadable(cause);
    throw new SetupError(`identity.keypair: ${path}: ${why}`, { cause });
  }
}

/** The file system's error code, and a hint if there is no file yet. */
function unreadable(cause: unknown): string {
  const code = codeOf(cause) ?? "unknown";
  const way =
    "solana-keygen new makes one, and without the key an edge takes a fresh one, unstaked";
  return `it cannot be read (${code})${code === "ENOENT" ? `: ${way}` : ""}`;
}

export function createIdentityHolder(
  { log, engine }: { readonly log: Log; readonly engine: Pick<Engine, "useIdentity"> },
  first: Identity,
  path: string | null,
): IdentityHolder {
  let identity = first;
  return {
    get identity() {
      return identity;
    },
    reload() {
      if (path === null) return;
      const next = readIdentity(path);
      if (Buffer.from(next.publicKey).equals(identity.publicKey)) return;
      engine.useIdentity(next);
      const names = { from: encodeBase58(identity.publicKey), to: encodeBase58(next.publicKey) };
      identity = next;
      log.info(names, "identity changed, connections are being renewed");
    },
  };
}
