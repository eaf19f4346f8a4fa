import { describe, expect, it } from "vitest";
import { installed, lockedCrates, readRoot } from "../support/lockfiles.ts";

interface Package {
  readonly name: string;
  readonly version: string;
  readonly license: string | null;
}

interface Script {
  readonly RULE: string;
  noticesText(
    head: string,
    sections: readonly {
      readonly title: string;
      readonly packages: readonly (Package & { readonly texts: readonly string[] })[];
    }[],
  ): string;
}

interface Section {
  readonly title: string;
  /** With the numbers of their texts. */
  readonly packages: (Package & { readonly texts: readonly number[] })[];
}

const script = new URL("../../scripts/notices-text.mjs", import.meta.url);
// Plain JavaScript, of which the compiler knows nothing.
const { noticesText, RULE } = (await import(script.href)) as Script;

const LINE = /^ {2}(\S+) (\S+)(?: {2}([^[]+?))?(?: {2}\[([\d, ]+)\])?$/;

/** The sections of such a file. */
function sectionsOf(text: string): readonly Section[] {
  const [lists = ""] = text.split(`${RULE}\n`, 1);
  const sections: Section[] = [];
  let title = "";
  for (const line of lists.split("\n")) {
    const match = LINE.exec(line);
    if (match === null) {
      if (line !== "") title = line;
      continue;
    }
    const [, name = "", version = "", license = null, numbers = ""] = match;
    if (sections.at(-1)?.title !== title) sections.push({ title, packages: [] });
    const texts = numbers.split(", ").filter(Boolean).map(Number);
    sections.at(-1)?.packages.push({ name, version, license, texts });
  }
  return sections;
}

const textCountOf = (text: string): number => text.split(`${RULE}\n[`).length - 1;

const MADE_ANEW = "`npm run notices` writes THIRD_PARTY_NOTICES anew";
const notices = readRoot("THIRD_PARTY_NOTICES");

const exact = ({ name, version }: Pick<Package, "name" | "version">) => `${name} ${version}`;
const exactOf = (list: readonly Package[]) => list.map(exact).sort();
const section = (title: string) =>
  sectionsOf(notices).find((each) => each.title.startsWith(title))?.packages ?? [];

describe("THIRD_PARTY_NOTICES", () => {
  it("names what an edge installs from npm, in the versions of the lockfile", () => {
    const locked = installed.filter(({ dev }) => !dev).map(exact);
    expect(exactOf(section("npm packages")), MADE_ANEW).toEqual([...new Set(locked)].sort());
  });

  it("names uPlot, which the dashboard's pages contain, in the version of the lockfile", () => {
    const locked = installed.filter(({ name }) => name === "uplot").map(exact);
    expect(exactOf(section("Copied into")), MADE_ANEW).toEqual(locked);
  });

  it("names every locked crate once, in its version", () => {
    const named = [
      ...exactOf(section("Crates that the native engine links")),
      ...exactOf(section("Crates of native/Cargo.lock")),
    ];
    const locked = lockedCrates(readRoot("native/Cargo.lock")).map(exact);
    expect(locked.length).toBeGreaterThan(100);
    expect(named.sort(), MADE_ANEW).toEqual(locked.sort());
  });

  it("has a text or a source for what is distributed, and each text that it refers to", () => {
    const distributed = sectionsOf(notices)
      .filter(({ title }) => !title.startsWith("Crates of native/Cargo.lock"))
      .flatMap(({ packages }) => packages);
    const bare = distributed.filter(({ license, texts }) => license === null && texts.length === 0);
    expect(bare.map(exact)).toEqual([]);
    const numbers = new Set(distributed.flatMap(({ texts }) => texts));
    const count = textCountOf(notices);
    expect([...numbers].sort((a, b) => a - b)).toEqual(
      Array.from({ length: count }, (_, index) => index + 1),
    );
  });

  it("goes with the image and with the package", () => {
    const { files }: { readonly files: readonly string[] } = JSON.parse(readRoot("package.json"));
    expect(files).toEqual(expect.arrayContaining(["LICENSE", "NOTICE", "THIRD_PARTY_NOTICES"]));
    expect(readRoot("Dockerfile")).toMatch(/^COPY LICENSE NOTICE THIRD_PARTY_NOTICES .*\.\/$/m);
  });
});

describe("the form of the notices", () => {
  it("holds each text once, and gives back what it was made of", () => {
    const text = noticesText("Head\n", [
      {
        title: "One",
        packages: [
          { name: "b", version: "2.0.0", license: "MIT", texts: ["Mine\r\n\n  kept \n", "Other"] },
          {
            name: "@a/x",
            version: "1.0.0",
            license: "MIT OR Apache-2.0",
            texts: ["\nMine\n\n  kept"],
          },
          { name: "b", version: "2.0.0", license: "MIT", texts: ["Mine\n\n  kept", "Other"] },
        ],
      },
      { title: "Two", packages: [{ name: "c", version: "3.0.0", license: null, texts: [] }] },
    ]);
    expect(textCountOf(text)).toBe(2);
    expect(sectionsOf(text)).toEqual([
      {
        title: "One",
        packages: [
          { name: "@a/x", version: "1.0.0", license: "MIT OR Apache-2.0", texts: [1] },
          { name: "b", version: "2.0.0", license: "MIT", texts: [1, 2] },
        ],
      },
      { title: "Two", packages: [{ name: "c", version: "3.0.0", license: null, texts: [] }] },
    ]);
    expect(text).toContain("[1]\n\nMine\n\n  kept\n");
  });
});
