/** The snippets of the documents, and the commands in them. */

import { listFiles, readSource, type Source } from "./source-tree.ts";

export interface Snippet {
  /** The document and line at which it starts. */
  readonly place: string;
  /** The language after the fence: `sh`, `toml`; empty for a diagram. */
  readonly language: string;
  readonly text: string;
}

export const documents = listFiles(".", ".md").map(readSource);

export const snippets: readonly Snippet[] = documents.flatMap(snippetsOf);

function snippetsOf({ path, text }: Source): readonly Snippet[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    place: `${path}:${text.slice(0, match.index).split("\n").length}`,
    language: match[1] ?? "",
    text: match[2] ?? "",
  }));
}

/** The commands of a snippet, without comments, one per line. */
export function linesOf({ text }: Snippet): readonly string[] {
  return text
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");
}

/** The words of a command; a quoted part is one word with what it touches. */
export function wordsOf(command: string): readonly string[] {
  const words = command.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  return words.map((word) => word.replace(/^(["'])(.*)\1$/, "$2"));
}
