import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./support/source-tree.ts";

describe("the Dockerfile", () => {
  const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap((match) =>
    (match[1] ?? "").split(" "),
  );

  it("copies only what exists or an earlier stage has built", () => {
    expect(copied).toContain("src");
    expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it("is given by .dockerignore what it copies", () => {
    const ignore = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
    const given = ignore.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    expect(copied.filter((path) => !given.includes(path))).toEqual([]);
  });

  const bases = new Map(
    [...dockerfile.matchAll(/^ARG (\w+)=(\S+)$/gm)].map(([, name = "", image = ""]) => [
      name,
      image,
    ]),
  );
  const images = [...dockerfile.matchAll(/^FROM (.+?)(?: AS \w+)?$/gm)].map(
    ([, image = ""]) => bases.get(/^\$\{(\w+)\}$/.exec(image)?.[1] ?? "") ?? image,
  );

  it("runs without root, on Node 24 or newer and Debian 13", () => {
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(images.at(-1)).toMatch(/^node:(?:2[4-9]|[3-9]\d)\.\d+\.\d+-trixie-slim@/);
    expect(images.at(-2), "the packages are installed for the Node that runs them").toBe(
      images.at(-1),
    );
  });

  it("takes images by their digest, and packages as they are locked", () => {
    expect(images.filter((image) => !/@sha256:[0-9a-f]{64}$/.test(image))).toEqual([]);
    expect(dockerfile).toMatch(/^RUN npm ci/m);
    expect(dockerfile).not.toMatch(/npm install/);
  });

  it("builds the native engine for the system that runs it, and puts it where it is sought", () => {
    expect(images[0]).toMatch(/^rust:\d+\.\d+\.\d+-slim-trixie@/);
    expect(dockerfile).toMatch(/^FROM \S+ AS native$/m);
    expect(dockerfile).toMatch(/^COPY --from=native \/app\/native\/touchdown\.node native\/$/m);
    const ignore = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
    // What one machine has built is not for another.
    expect(ignore).toEqual(expect.arrayContaining(["native/target", "native/touchdown.*"]));
  });
});
