/**
 * A column of strings that grows by pages, so that a large one neither starts at its full size nor
 * is copied as it grows. It holds references; the same few strings usually stand in many places.
 */

const PAGE_SIZE = 1024;

export interface StringColumn {
  set(index: number, text: string): void;
  /** The text at `index`; empty where none was set. */
  at(index: number): string;
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
    at: (index) => pages[Math.floor(index / PAGE_SIZE)]?.[index % PAGE_SIZE] ?? "",
  };
}
