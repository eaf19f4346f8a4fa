/**
 * "The first region, step by step" of docs/deploy.md: its files and commands agree with each other
 * and with the files of `ops` that they use.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ENGINE_SOCKET_BYTES } from "../../src/cli/doctor/host.ts";
import { configFromValues, controlFromValues } from "../../src/config/load.ts";
import { formatListen } from "../../src/config/value-types.ts";
import { parseToml } from "../../src/runtime/toml.ts";
import { ROOT, readSource } from "../support/source-tree.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const page = readSource("docs/deploy.md").text;
const section = page.slice(
  page.indexOf("## The first region, step by step"),
  page.indexOf("## The first region in containers"),
);
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const [controlToml = "", edgeToml = ""] = [...section.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].map(
  ([, text = ""]) => text.replaceAll("…", "secret").replaceAll("<base58>", TIP),
);

function tableOf(toml: string): Record<string, unknown> {
  const parsed = parseToml(toml);
  if (parsed.kind !== "ok") throw new Error(parsed.message);
  return parsed.value;
}

const control = controlFromValues(tableOf(controlToml), ROOT, {});
const edge = configFromValues(tableOf(edgeToml), ROOT, {});
/** What the second edge has instead. */
const [, secondName, secondPort, secondAdminPort, secondJournal] =
  /`edge-2\.toml` with `(\S+)`, the ports (\d+) and (\d+), and\s+`(\S+)`/.exec(section) ?? [];

describe("the first region of docs/deploy.md", () => {
  it("is found whole", () => {
    expect(section.match(/^\*\*\d\. /gm)).toHaveLength(9);
    expect([secondName, secondJournal]).toEqual(["fra-2", "keys-2.journal"]);
  });

  it("checks the one file of a release that it asks for", () => {
    expect(section).toContain("tarball and `SHA256SUMS` of [a release]");
    // Without it sha256sum fails, because the list names the release's other files too.
    expect(section).toContain("\nsha256sum --check --ignore-missing SHA256SUMS\n");
  });

  it("has the logins that roles.sh makes", () => {
    const roles = [...read("ops/compose/roles.sh").matchAll(/^create role (\w+) login/gm)];
    const urls = [edge.accounts.databaseUrl, control.databaseUrl, control.ownerUrl];
    expect(urls.map((url) => new URL(url ?? "").username).sort()).toEqual(
      roles.map(([, name]) => name).sort(),
    );
    for (const [variable] of read("ops/compose/roles.sh").matchAll(/\w+_PASSWORD/g)) {
      expect(section).toContain(`${variable}=…`);
    }
  });

  it("keeps journals and vault where the units may write", () => {
    const unit = read("ops/systemd/touchdown-edge.service");
    expect(unit).toContain("\nStateDirectory=touchdown\n");
    for (const path of [edge.accounts.journal, control.vaultFile]) {
      expect(path).toMatch(/^\/var\/lib\/touchdown\/[^/]+$/);
    }
  });

  it("has one address for each listener, which the others know it by", () => {
    const ports = [
      ...[edge.http.listen, edge.admin.listen, control.listen, control.admin.listen],
      ...[secondPort, secondAdminPort, "9091"].map((port) => ({ port: Number(port) })),
    ].map(({ port }) => port);
    expect(new Set(ports).size).toBe(ports.length);
    expect(control.edges.map(({ name, at }) => [name, at])).toEqual([
      [edge.name, `http://${formatListen(edge.admin.listen)}`],
      [secondName, `http://127.0.0.1:${secondAdminPort}`],
    ]);
    expect(section).toContain(`EDGE_A=${formatListen(edge.http.listen)}\n`);
    expect(section).toContain(`EDGE_B=127.0.0.1:${secondPort}\n`);
    expect(section).toContain(`CONTROL=${formatListen(control.listen)}\n`);
    const dataSource = read("ops/compose/grafana-datasource.yaml");
    const [, prometheus] = /--web\.listen-address=([\d.:]+)/.exec(section) ?? [];
    expect(dataSource).toContain(`url: http://${prometheus}\n`);
    const dashboards = read("ops/compose/grafana-dashboards.yaml");
    expect(section).toContain("cp -r ops/grafana /etc/grafana/touchdown\n");
    expect(dashboards).toContain("path: /etc/grafana/touchdown\n");
  });

  it("gives HAProxy each variable of its files", () => {
    const files = ["ops/haproxy/haproxy.cfg", "ops/haproxy/dashboard.cfg"].map(read).join("");
    const used = new Set([...files.matchAll(/"\$([A-Z_]+)"/g)].map(([, name]) => name));
    const given = [...section.matchAll(/^([A-Z_]+)=\S+$/gm)].map(([, name]) => name);
    expect(given.sort()).toEqual([...used].sort());
  });

  it("has HAProxy serve clients as a user without rights, in a folder of its own", () => {
    const [command = ""] = /^printf 'global.* > \/etc\/haproxy\/haproxy\.cfg$/m.exec(section) ?? [];
    for (const line of ["user haproxy", "group haproxy", "chroot /var/lib/haproxy"]) {
      expect(command).toContain(`\\n    ${line}\\n`);
    }
    const files = "ops/haproxy/haproxy.cfg ops/haproxy/dashboard.cfg";
    expect(section).toContain(`\ncat ${files} >> /etc/haproxy/haproxy.cfg\n`);
  });

  it("makes the second unit by one change of the first", () => {
    const unit = read("ops/systemd/touchdown-edge.service");
    expect(section).toContain("sed s/edge.toml/edge-2.toml/ ops/systemd/touchdown-edge.service");
    const commands = unit.split("\n").filter((line) => /^Exec/.test(line));
    for (const line of commands) expect(line.match(/edge.toml/g)).toHaveLength(1);
    expect(commands).toHaveLength(2);
  });

  it("raises the buffers to what the engine asks for", () => {
    expect(section).toContain(`= ${ENGINE_SOCKET_BYTES}\\n' rmem wmem`);
  });
});

describe("the deploy hook of certbot in docs/operations.md", () => {
  it("copies both files, also where their folder is not there yet", () => {
    const [command = ""] =
      /^ +.*\binstall .*-g touchdown.*$/m.exec(read("docs/operations.md")) ?? [];
    const folder = mkdtempSync(join(tmpdir(), "touchdown-hook-"));
    for (const name of ["fullchain.pem", "privkey.pem"]) writeFileSync(join(folder, name), name);
    const own = command
      .replace("-g touchdown", `-g ${process.getgid?.()}`)
      .replace("/etc/touchdown/tls", join(folder, "touchdown/tls"));
    const env = { ...process.env, RENEWED_LINEAGE: folder };
    const { status, stderr } = spawnSync("sh", ["-c", own], { env, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const copied = join(folder, "touchdown/tls/privkey.pem");
    expect([readFileSync(copied, "utf8"), statSync(copied).mode & 0o777]).toEqual([
      "privkey.pem",
      0o640,
    ]);
    rmSync(folder, { recursive: true });
  });
});
