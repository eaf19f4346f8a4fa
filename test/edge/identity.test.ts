import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { encodeBase58 } from "../../src/core/encoding.ts";
import { SetupError } from "../../src/core/errors.ts";
import type { Log } from "../../src/core/log.ts";
import { createIdentityHolder, readIdentity } from "../../src/edge/identity.ts";
import { freshIdentity, type Identity } from "../../src/send/identity.ts";

const folder = mkdtempSync(join(tmpdir(), "touchdown-identity-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "identity.json");

function write(identity: Identity): Identity {
  writeFileSync(path, JSON.stringify([...identity.seed, ...identity.publicKey]));
  return identity;
}

function holderOf(first: Identity, file: string | null = path) {
  const used: Identity[] = [];
  const lines: unknown[] = [];
  const log: Log = { info: (fields) => lines.push(fields), warn() {}, error() {} };
  const sender = { useIdentity: (identity: Identity) => void used.push(identity) };
  return { holder: createIdentityHolder({ log, engine: sender }, first, file), used, lines };
}

describe("an edge's identity", () => {
  it("is read from the file, and new each time without a file", () => {
    const written = write(freshIdentity());
    expect(readIdentity(path)).toEqual(written);
    expect(readIdentity(null)).not.toEqual(readIdentity(null));
  });

  it("changes with its file, and the log contains only both public keys", () => {
    const before = write(freshIdentity());
    const { holder, used, lines } = holderOf(before);
    holder.reload();
    expect(used).toEqual([]);
    const after = write(freshIdentity());
    holder.reload();
    holder.reload();
    expect([holder.identity, used]).toEqual([after, [after]]);
    const [from, to] = [before, after].map((it) => encodeBase58(it.publicKey));
    expect(lines).toEqual([{ from, to }]);
  });

  it("is unchanged when the file is invalid or missing", () => {
    const first = write(freshIdentity());
    const { holder, used } = holderOf(first);
    writeFileSync(path, JSON.stringify([...first.seed]));
    expect(() => holder.reload()).toThrow(SetupError);
    rmSync(path);
    expect(() => holder.reload()).toThrow("cannot be read");
    expect([holder.identity, used]).toEqual([first, []]);
  });

  it("is unchanged when the engine makes no certificate of the new one", () => {
    const first = write(freshIdentity());
    const log: Log = { info() {}, warn() {}, error() {} };
    const sender = {
      useIdentity() {
        throw new Error("no certificate");
      },
    };
    const holder = createIdentityHolder({ log, engine: sender }, first, path);
    write(freshIdentity());
    expect(() => holder.reload()).toThrow("no certificate");
    expect(holder.identity).toBe(first);
  });

  it("is not reloaded without a file", () => {
    const { holder, used } = holderOf(freshIdentity(), null);
    holder.reload();
    expect(used).toEqual([]);
  });
});
