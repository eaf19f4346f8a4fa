import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SetupError } from "../../src/core/errors.ts";
import { buildFor, type Host, loadUws } from "../../src/http/uws.ts";
import { ROOT } from "../support/source-tree.ts";

const ABIS: Readonly<Record<string, string>> = {
  "20.19.0": "115",
  "21.7.3": "120",
  "22.12.0": "127",
  "23.11.1": "131",
  "24.21.0": "137",
  "25.9.0": "141",
  "26.10.0": "147",
};

function host(node: string, glibc: string | null, platform = "linux", arch = "x64"): Host {
  return { node, abi: ABIS[node] ?? "999", platform, arch, glibc };
}

/** The loader's error message, which never claims that touchdown has a bug. */
function rejection(of: Host): string {
  try {
    return `no refusal but ${buildFor(of)}`;
  } catch (error) {
    expect(error).toBeInstanceOf(SetupError);
    return error instanceof Error ? error.message : "";
  }
}

describe("the build for a Node and a system", () => {
  it.each([
    ["20.19.0", "2.36", "uws-node20"],
    ["20.19.0", "2.41", "uws-node20"],
    ["22.12.0", "2.36", "uws-node20"],
    ["22.12.0", "2.41", "uws-node20"],
    ["23.11.1", "2.36", "uws-node20"],
    ["24.21.0", "2.38", "uws-node24"],
    ["24.21.0", "2.100", "uws-node24"],
    ["26.10.0", "2.41", "uws-node24"],
  ])("for Node %s on glibc %s is %s", (node, glibc, build) => {
    expect(buildFor(host(node, glibc))).toBe(build);
  });

  it("requires no glibc on a system other than Linux", () => {
    expect(buildFor(host("24.21.0", null, "darwin", "arm64"))).toBe("uws-node24");
  });

  it.each(["arm64", "riscv64"])("is none for Linux on %s, and says where one is", (arch) => {
    for (const node of ["22.12.0", "24.21.0"]) {
      expect(rejection(host(node, "2.41", "linux", arch))).toBe(
        `npm has no binary of the HTTP library for Linux on ${arch}; the releases of its author ` +
          "have one for arm64, and docs/uwebsockets.md says how to install them",
      );
    }
  });

  it.each(["24.21.0", "26.10.0"])("refuses Node %s on glibc below 2.38", (node) => {
    expect(rejection(host(node, "2.37"))).toBe(
      `on Node ${node} the HTTP library needs glibc 2.38 or newer (Debian 13, Ubuntu 24.04), ` +
        "this system has 2.37: use such a system, or Node 22 on this one",
    );
  });

  it.each(["21.7.3", "25.9.0", "99.0.0"])("refuses Node %s and names others", (node) => {
    expect(rejection(host(node, "2.41"))).toBe(
      `the HTTP library has no binary for Node ${node}: use Node 24 or 26`,
    );
    expect(rejection(host(node, "2.36"))).toBe(
      `the HTTP library has no binary for Node ${node}: use Node 22, ` +
        "or Node 24 or 26 on glibc 2.38 or newer (Debian 13, Ubuntu 24.04)",
    );
  });

  it.each(Object.keys(ABIS))("refuses Node %s without glibc", (node) => {
    expect(rejection(host(node, null))).toBe(
      "the HTTP library needs glibc, which this system does not have: " +
        "use a system with glibc 2.38 or newer (Debian 13, Ubuntu 24.04)",
    );
  });
});

describe("loading", () => {
  /** Records the imports; fails with the message `failure`, if there is one. */
  function sources(hasUpstream: boolean, failure: string | null = null) {
    const imported: string[] = [];
    const load = async (name: string) => {
      imported.push(name);
      if (failure !== null) throw new Error(failure);
      return { App: name };
    };
    return { imported, hasUpstream, import: load };
  }

  it("chooses the build that fits", async () => {
    const from = sources(false);
    expect(await loadUws(host("24.21.0", "2.41"), from)).toEqual({ App: "uws-node24" });
    expect(from.imported).toEqual(["uws-node24"]);
  });

  it.each([
    host("20.19.0", "2.36"),
    host("24.21.0", "2.36"),
    host("24.21.0", "2.41", "linux", "arm64"),
    host("99.0.0", null),
  ])(
    "takes the package uWebSockets.js where it is installed: $node, $arch, glibc $glibc",
    async (on) => {
      const from = sources(true);
      expect(await loadUws(on, from)).toEqual({ App: "uWebSockets.js" });
      expect(from.imported).toEqual(["uWebSockets.js"]);
    },
  );

  const LIBRARY_SAYS =
    "This version of uWS.js (v20.67.0) supports only Node.js versions 22, 24 and 26\n\n" +
    "Error: Cannot find module '@uwsjs/linux-x64-24'\nRequire stack:\n- a.js";

  it("names what to do when the binary of another Node is installed", async () => {
    const failed = loadUws(host("24.21.0", "2.41"), sources(false, LIBRARY_SAYS));
    await expect(failed).rejects.toThrow(SetupError);
    await expect(failed).rejects.toThrow(
      "uws-node24 does not load on Node 24.21.0 on linux-x64 " +
        "(Error: Cannot find module '@uwsjs/linux-x64-24'): run `npm ci` with the Node that " +
        "runs the service, it installs the matching binary",
    );
  });

  it("names what to do when the operator's package does not load", async () => {
    const failed = loadUws(host("25.9.0", "2.41"), sources(true, "no such binary"));
    await expect(failed).rejects.toThrow(SetupError);
    await expect(failed).rejects.toThrow(
      "uWebSockets.js does not load on Node 25.9.0 on linux-x64: " +
        "install a release of it that has a binary for this Node, or remove it",
    );
  });
});

describe("an installation", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "touchdown-uws-"));
    for (const file of ["http/uws.js", "core/errors.js"]) {
      cpSync(join(ROOT, "dist", file), join(folder, "dist", file));
    }
    for (const name of ["uWebSockets.js", "uws-node20", "uws-node24"]) {
      mkdirSync(join(folder, "node_modules", name), { recursive: true });
      const manifest = { name, main: "index.js" };
      writeFileSync(join(folder, "node_modules", name, "package.json"), JSON.stringify(manifest));
      writeFileSync(join(folder, "node_modules", name, "index.js"), `exports.App = "${name}";`);
    }
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The package that a process of the same Node version loads there. */
  function taken(): string {
    const url = pathToFileURL(join(folder, "dist/http/uws.js")).href;
    const program = `console.log((await import("${url}")).App)`;
    const args = ["--input-type=module", "--eval", program];
    return execFileSync(process.execPath, args, { encoding: "utf8" }).trim();
  }

  it("has its uWebSockets.js loaded, and one of the two builds without it", () => {
    expect(taken()).toBe("uWebSockets.js");
    rmSync(join(folder, "node_modules/uWebSockets.js"), { recursive: true });
    expect(taken()).toMatch(/^uws-node2[04]$/);
  });
});

// The checksums are those of the binaries for Linux on x64.
const onTestedSystem = process.platform === "linux" && process.arch === "x64";

describe.runIf(onTestedSystem)("the binary of this process", () => {
  const sums = new Map(
    readFileSync(join(ROOT, "docs/uwebsockets.sha256"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => line.split("  ") as [string, string])
      .map(([sum, path]) => [path, sum]),
  );

  it("has the SHA-256 that is kept in docs/uwebsockets.sha256", () => {
    const report: { sharedObjects?: readonly string[] } = process.report.getReport();
    const loaded = (report.sharedObjects ?? []).filter((path) => path.includes("uws"));
    expect(loaded).toHaveLength(1);
    for (const path of loaded) {
      const sum = createHash("sha256").update(readFileSync(path)).digest("hex");
      expect([relative(ROOT, path), sum]).toEqual([
        relative(ROOT, path),
        sums.get(relative(ROOT, path)),
      ]);
    }
  });

  it("is kept for every Node that has a build", () => {
    const lines = ["20", "22", "23", "24", "26"];
    const paths = lines.map((line) => `node_modules/@uwsjs/linux-x64-${line}/uws.node`);
    expect([...sums.keys()]).toEqual(paths);
    expect(new Set(sums.values()).size).toBe(lines.length);
  });
});
