/**
 * The form of THIRD_PARTY_NOTICES: sections of packages, each a line with name, version, licence and
 * the numbers of its texts, and the texts below, each once.
 */

/**
 * @typedef {{ name: string, version: string, license: string | null, texts: string[] }} Package
 * @typedef {{ title: string, packages: Package[] }} Section
 */

/** Between the texts. */
export const RULE = "-".repeat(80);

/**
 * @param {string} head what the file says first
 * @param {Section[]} sections
 */
export function noticesText(head, sections) {
  /** @type {string[]} */
  const texts = [];
  const numberOf = (text) => {
    const known = texts.indexOf(text);
    return known === -1 ? texts.push(text) : known + 1;
  };
  const lists = sections.map(({ title, packages }) => {
    const lines = inOrder(packages).map(({ name, version, license, texts: own }) => {
      const numbers = own.map((text) => numberOf(tidied(text))).join(", ");
      const more = [license ?? "", numbers === "" ? "" : `[${numbers}]`].filter(Boolean);
      return ["", `${name} ${version}`, ...more].join("  ");
    });
    return `${title}\n\n${lines.join("\n")}\n`;
  });
  const bodies = texts.map((text, index) => `${RULE}\n[${index + 1}]\n\n${text}\n`);
  return [head, ...lists, ...bodies].join("\n");
}

/** By name and then version, each once. */
function inOrder(packages) {
  const keyed = new Map(packages.map((each) => [`${each.name} ${each.version}`, each]));
  return [...keyed].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

/** So that texts which differ in nothing but white space at the ends of lines are one. */
function tidied(text) {
  return text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .replace(/^\n+|\n+$/g, "");
}
