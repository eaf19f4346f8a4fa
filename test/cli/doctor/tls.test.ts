import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tlsFindings } from "../../../src/cli/doctor/tls.ts";
import { createAuthority, type Issued } from "../../support/authority.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 10, 26);
const authority = createAuthority();
const good = authority.issue(NOW_MS - DAY_MS, NOW_MS + 60 * DAY_MS);

let folder = "";
let server: Server | null = null;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "touchdown-doctor-tls-"));
});
afterEach(() => {
  server?.close();
  server = null;
  rmSync(folder, { recursive: true, force: true });
});

const NO_QUIC = { listen: null, tls: null };

/** The findings by check, with the files of `[http.tls]` written. */
async function find(
  { certificate, key }: Issued,
  { port = 0, authorities = [authority.certificate], mode = 0o600 } = {},
) {
  const tls = {
    certificate: join(folder, "cert.pem"),
    key: join(folder, "key.pem"),
  } as const;
  writeFileSync(tls.certificate, certificate);
  writeFileSync(tls.key, key);
  chmodSync(tls.key, mode);
  const clock = createFakeClock(0, NOW_MS);
  const listen = { host: "0.0.0.0", port };
  const found = await tlsFindings(clock, { listen, tls }, NO_QUIC, authorities);
  return new Map(found.map((finding) => [finding.check, finding]));
}

const levels = (found: Awaited<ReturnType<typeof find>>) =>
  Object.fromEntries([...found].map(([check, { level }]) => [check, level]));

async function serve({ certificate, key }: Issued): Promise<number> {
  server = createServer({ cert: certificate, key }, (socket) => socket.end());
  const listening = server;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const address = listening.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("the TLS of an edge", () => {
  it("is not looked at where a proxy speaks it", async () => {
    const http = { listen: { host: "127.0.0.1", port: 0 }, tls: null };
    expect(await tlsFindings(createFakeClock(), http, NO_QUIC)).toEqual([]);
  });

  it("is looked at for QUIC clients alone, whose connections are not", async () => {
    writeFileSync(join(folder, "quic.pem"), good.certificate);
    writeFileSync(join(folder, "quic.key"), good.key, { mode: 0o644 });
    const files = { certificate: join(folder, "quic.pem"), key: join(folder, "quic.key") };
    const quic = {
      listen: { host: "127.0.0.1", port: 8_009 },
      tls: files,
    };
    const http = { listen: { host: "127.0.0.1", port: await serve(good) }, tls: null };
    const found = await tlsFindings(createFakeClock(0, NOW_MS), http, quic);
    expect(found.map(({ check, level }) => `${check} ${level}`)).toEqual([
      "quic_pair ok",
      "quic_key_kind ok",
      "quic_key_file warning",
      "quic_expiry ok",
      "quic_chain warning",
      "quic_names ok",
    ]);
    const [missing] = await tlsFindings(createFakeClock(), http, { ...quic, tls: null });
    expect(missing).toMatchObject({ check: "quic_pair", level: "warning" });
    expect(missing?.message).toBe("quic.listen is given, and neither quic.tls nor http.tls");
  });

  it("is well with a valid pair of a known authority, which the edge presents", async () => {
    const found = await find(good, { port: await serve(good) });
    expect(levels(found)).toEqual({
      pair: "ok",
      key_kind: "ok",
      key_file: "ok",
      expiry: "ok",
      chain: "ok",
      names: "ok",
      presented: "ok",
    });
    expect(found.get("names")?.message).toBe("IP Address:127.0.0.1");
    expect(found.get("expiry")?.message).toBe("valid until 2027-01-25T00:00:00.000Z");
  });

  it("has an error for a pair that an edge cannot use, and no further finding", async () => {
    const other = authority.issue(NOW_MS - DAY_MS, NOW_MS + DAY_MS);
    const mixed = await find({ certificate: good.certificate, key: other.key });
    expect(levels(mixed)).toEqual({ pair: "error" });
    expect(mixed.get("pair")?.message).toContain("not the key of the first certificate");
    const ended = await find(authority.issue(NOW_MS - 2 * DAY_MS, NOW_MS - DAY_MS));
    expect(ended.get("pair")?.message).toContain("expired on 2026-11-25");
  });

  it("is warned of 14 days before the end", async () => {
    const until = (days: number) => authority.issue(NOW_MS - 77 * DAY_MS, NOW_MS + days * DAY_MS);
    expect((await find(until(15))).get("expiry")?.level).toBe("ok");
    const soon = (await find(until(13))).get("expiry");
    expect(soon).toMatchObject({ level: "warning", message: expect.stringMatching(/in 13 days/) });
  });

  it("has a chain without a gap", async () => {
    const whole = { ...good, certificate: good.certificate + authority.certificate };
    expect((await find(whole)).get("chain")?.level).toBe("ok");
    const stranger = createAuthority().certificate;
    for (const [after, words] of [
      [stranger, "certificate 2 of 2 in .* is not the issuer of the one before"],
      ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "2 of 2 .* be read"],
    ] as const) {
      const found = await find({ ...good, certificate: good.certificate + after });
      expect(found.get("chain")).toMatchObject({
        level: "warning",
        message: expect.stringMatching(words),
      });
    }
  });

  it("has a chain to an authority that clients know", async () => {
    const alone = (await find(good, { authorities: [] })).get("chain");
    expect(alone?.message).toMatch(/issuer .* CN=an authority of one's own, is neither/);
    expect(alone?.fix).toContain("fullchain.pem");
    const whole = { ...good, certificate: good.certificate + authority.certificate };
    const own = (await find(whole, { authorities: [] })).get("chain");
    expect(own?.message).toMatch(/its own issuer and not in Mozilla's list/);
  });

  it("has a key that others cannot read", async () => {
    const found = (await find(good, { mode: 0o644 })).get("key_file");
    expect(found?.level).toBe("warning");
    expect(found?.fix).toBe(`chmod o-r ${join(folder, "key.pem")}`);
  });

  it("is what the running edge presents", async () => {
    const before = authority.issue(NOW_MS - DAY_MS, NOW_MS + DAY_MS);
    const found = (await find(good, { port: await serve(before) })).get("presented");
    expect(found).toMatchObject({ level: "warning", fix: expect.stringMatching(/kill -s HUP/) });
  });

  it("says no word about an edge that does not run", async () => {
    const port = await serve(good);
    server?.close();
    server = null;
    expect((await find(good, { port })).has("presented")).toBe(false);
  });
});
