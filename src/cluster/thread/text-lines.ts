/**
 * Lists of short texts as one text, because a message with one text is copied ten times as fast as
 * one with a list; and the longest texts that a message carries.
 */

export const LINE_END = "\n";

/** The text if it fits in a line of a list; null if it is too long or has control characters. */
export function lineText(text: string): string | null {
  return text.length <= LINE_TEXT_CHARS_MAX && !CONTROL_CHARACTER.test(text) ? text : null;
}

/** None for an empty text. */
export function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(LINE_END);
}

/** The text, cut off after that many characters. */
export function clipped(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}…`;
}

/** An identity has 44 characters; an address and a version have no more. */
const LINE_TEXT_CHARS_MAX = 64;
/** They separate texts. */
const CONTROL_CHARACTER = /\p{Cc}/u;
