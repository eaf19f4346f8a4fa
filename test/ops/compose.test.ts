/**
 * `compose.yaml` and the files that it mounts, as far as they can be judged without a container
 * engine: files exist, configurations load, images have exact versions, ports agree.
 */

import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { configFromValues, controlFromValues } from "../../src/config/load.ts";
import { formatListen } from "../../src/config/value-types.ts";
import { parseToml } from "../../src/runtime/toml.ts";
import { ROOT } from "../support/source-tree.ts";

const TIP = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const compose = readFileSync(join(ROOT, "compose.yaml"), "utf8");
const matches = (text: string, form: RegExp): string[] =>
  [...text.matchAll(form)].map(([, found]) => found ?? "");

/** The table of a file with its placeholders filled in. */
function tableOf(file: string): Record<string, unknown> {
  const text = readFileSync(join(ROOT, file), "utf8")
    .replaceAll("TIP_ACCOUNT", TIP)
    .replace(/\b[A-Z]{4,}\b/g, (word) => `${word.toLowerCase()}.example`);
  const parsed = parseToml(text);
  if (parsed.kind !== "ok") throw new Error(parsed.message);
  return parsed.value;
}

/** The environment that compose.yaml gives a service, with a password in each place. */
function environmentOf(service: string): Record<string, string> {
  const block = new RegExp(`^ {2}${service}:\\n([\\s\\S]*?)(?=^ {2}\\w|^\\w)`, "m").exec(compose);
  const lines = [...(block?.[1] ?? "").matchAll(/^ {6}(TOUCHDOWN_\w+): (.*)$/gm)];
  const entries = lines.map(([, name = "", value = ""]) => [
    name,
    value.replace(/\$\{[^}]*\}/g, "secret"),
  ]);
  return Object.fromEntries(entries) as Record<string, string>;
}

const [edge, second] = ["edge", "edge-2"].map((service) =>
  configFromValues(tableOf("ops/compose/edge.toml"), ROOT, environmentOf(service)),
) as [Config, Config];
const control = controlFromValues(
  tableOf("ops/compose/control.toml"),
  ROOT,
  environmentOf("control"),
);

describe("compose.yaml", () => {
  it("mounts files that exist", () => {
    const mounted = matches(compose, /^ {6}- \.\/([^:\n]+):/gm);
    expect(mounted).toContain("ops/compose");
    expect(mounted.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(() => accessSync(join(ROOT, "ops/compose/roles.sh"), constants.X_OK)).not.toThrow();
  });

  it("takes the images of others by an exact version", () => {
    const images = matches(compose, /^ {4}image: (\S+)$/gm);
    expect(images).toHaveLength(4);
    for (const image of images) expect(image).toMatch(/^[\w/]+:v?\d+\.\d+(\.\d+)?(-[\w.]+)?$/);
  });

  it("builds the image once, and asks no registry for its name", () => {
    // Two services that build one name at the same time fail: "image … already exists".
    expect(matches(compose, /^ +build: (\S+)$/gm)).toEqual(["."]);
    const [, shared = ""] = /^x-touchdown: &touchdown\n((?: {2}.*\n)+)/m.exec(compose) ?? [];
    expect(shared).toContain("  image: touchdown\n");
    expect(shared).toContain("  pull_policy: never\n");
  });

  it("takes a browser's address from the proxy on this host", () => {
    expect(control.trustedProxies).toEqual(["127.0.0.1"]);
  });

  it("gives both services a database, with the logins that roles.sh makes", () => {
    const roles = matches(
      readFileSync(join(ROOT, "ops/compose/roles.sh"), "utf8"),
      /^create role (\w+) login/gm,
    );
    expect(second.accounts.databaseUrl).toBe(edge.accounts.databaseUrl);
    const urls = [edge.accounts.databaseUrl, control.databaseUrl, control.ownerUrl];
    expect(roles).toHaveLength(3);
    expect(urls.map((url) => new URL(url ?? "").username).sort()).toEqual(roles.sort());
  });

  it("keeps journal and vault in the folder that the image has for them", () => {
    const folder = "/var/lib/touchdown";
    expect(edge.accounts.journal).toMatch(new RegExp(`^${folder}/`));
    expect(control.vaultFile).toMatch(new RegExp(`^${folder}/`));
    expect(readFileSync(join(ROOT, "Dockerfile"), "utf8")).toContain(` ${folder}\n`);
    const volumes = matches(compose, /^ {6}- ((?:control|edge)\S*:\S+)$/gm);
    expect(volumes).toEqual(["control", "edge", "edge-2"].map((volume) => `${volume}:${folder}`));
  });

  it("has one address for each listener on this host", () => {
    const listeners = [edge, second].flatMap(({ http, admin }) => [http.listen, admin.listen]);
    const all = [...listeners, control.listen, control.admin.listen].map(formatListen);
    const [prometheus = ""] = matches(compose, /--web\.listen-address=(\S+)/g);
    expect(new Set([...all, prometheus]).size).toBe(7);
    for (const address of all) expect(address).toMatch(/^127\.0\.0\.1:/);
  });

  it("divides shared limits by the edges that it has", () => {
    expect(edge.limits.edges).toBe(2);
  });

  it("restarts what ended by itself, also after it was sent SIGHUP", () => {
    // Docker's `unless-stopped` takes any signal of `docker kill` for a wish to stop.
    // The control process and the edges have theirs in common.
    const policies = matches(compose, /^ +restart: (\S+)$/gm);
    expect(policies).toEqual(new Array(5).fill("always"));
    const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
    expect(dockerfile).toContain(" --restart always ");
  });

  it("stops nothing before its drain is over", () => {
    const graces = matches(compose, /stop_grace_period: (\d+)s/g).map(Number);
    const pendingMs = 30_000;
    const needed = [edge.http.drainGraceMs + pendingMs, control.drainGraceMs + pendingMs];
    expect(graces.map((seconds, at) => seconds * 1_000 >= (needed[at] ?? 0))).toEqual([true, true]);
  });

  it("has Prometheus, Grafana and the dashboard read whom they need", () => {
    const prometheus = readFileSync(join(ROOT, "ops/compose/prometheus.yaml"), "utf8");
    const admins = [edge, second, control].map(({ admin }) => formatListen(admin.listen));
    expect(matches(prometheus, /targets: \["(.+?)"\]/g)).toEqual(admins);
    expect(matches(prometheus, /instance: (\S+) /g)).toEqual([edge.name, second.name, "control"]);
    const listen = /--web\.listen-address=(\S+)/.exec(compose)?.[1];
    const source = readFileSync(join(ROOT, "ops/compose/grafana-datasource.yaml"), "utf8");
    expect(source).toContain(`url: http://${listen}\n`);
    const dashboards = readFileSync(join(ROOT, "ops/compose/grafana-dashboards.yaml"), "utf8");
    const [, folder] = /- \.\/ops\/grafana:(\S+):ro$/m.exec(compose) ?? [];
    expect(dashboards).toContain(`path: ${folder}\n`);
    expect(control.edges).toEqual(
      [edge, second].map(({ name, admin }) => ({
        name,
        at: `http://${formatListen(admin.listen)}`,
      })),
    );
  });

  it("gets each of its variables by the commands of docs/deploy.md", () => {
    const page = readFileSync(join(ROOT, "docs/deploy.md"), "utf8");
    const [, names = ""] = /^for name in (.+); do echo \$\{name\}_PASSWORD=/m.exec(page) ?? [];
    const passwords = names.split(" ").map((name) => `${name}_PASSWORD`);
    const others = matches(page, /^echo (\w+)=… >> \.env$/gm);
    const needed = new Set(matches(compose, /\$\{(\w+):\?/g));
    expect([...passwords, ...others].sort()).toEqual([...needed].sort());
    expect(matches(compose, /\$\{(\w+)\}/g).filter((name) => !needed.has(name))).toEqual([]);
    expect(edge.identity.keypair).toBe(join(ROOT, "identity.json"));
    expect(page).toMatch(/^install -o 1000 -m 0400 \S+ ops\/compose\/identity\.json$/m);
  });
});
