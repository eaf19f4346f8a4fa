/**
 * A column of strings that grows by pages, so that a large one neither starts at its full size nor
 * is copied as it grows. It holds references; the same few strings usually stand in many places.
 */

const PAGE_SIZE = 1024;
const REFERENCE_BYTES = 8;

export interface StringColumn {
  set(index: number, text: string): void;
  /** The text at `index`; empty where none was set. */
  at(index: number): string;
  /** What its references take so far. */
  readonly bytes: number;
}

export function createStringColumn(): StringColumn {
  const pages: string[][] = [];
  return {
    set(index, text) {
      const number = Math.floor(index / PAGE_SIZE);
      while (pages.length <= number) pages.push(new Array<string>(PAGE_SIZE).fill(""));
      const page = pages[number];
      if (page !== undefined) page[index % PAGE_SIZE] = text;
    },
    get bytes() {
      return pages.length * PAGE_SIZE * REFERENCE_BYTES;
    },
    at: (index) => pages[Math.floor(index / PAGE_SIZE)]?.[index % PAGE_SIZE] ?? "",
  };
}
