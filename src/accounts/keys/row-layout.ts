/**
 * The rows of the key table as numbers: everything that is known of a key lies side by side in 64
 * bytes, one line of the processor's caches, so that a key which nobody asked for lately costs one
 * wait for memory. Blocks are added and never copied. Whose numbers these are the rows know.
 *
 * Hot path: reading allocates nothing but the text of an id.
 */

/** What stands in a line: the digest, the id, and three numbers. One word is spare. */
const LINE_WORDS = 16;
const LINE_BYTES = LINE_WORDS * 4;
const DIGEST_WORDS = 8;
const ID_AT = DIGEST_WORDS;
const ID_BYTES = 16;
const ACCOUNT_AT = 12;
const PLAN_AT = 13;
const RESTRICTION_AT = 14;

/** Lines of one block; a power of two. */
const BLOCK_BITS = 12;
const BLOCK_LINES = 1 << BLOCK_BITS;
const PLACE_MASK = BLOCK_LINES - 1;

interface Block {
  readonly words: Uint32Array;
  /** The same memory. */
  readonly bytes: Buffer;
  /** Each line's account once more, to be looked through: a sixteenth of the memory to read. */
  readonly accounts: Uint32Array;
}

export class KeyLines {
  readonly #blocks: Block[] = [];

  /** Writes the digest into a line that is there, or into the first one behind them. */
  writeDigest(line: number, from: Buffer, at: number): void {
    const { words } = this.#blockOf(line);
    const start = (line & PLACE_MASK) * LINE_WORDS;
    for (let word = 0; word < DIGEST_WORDS; word += 1) {
      words[start + word] = from.readUInt32LE(at + word * 4);
    }
  }

  writeId(line: number, from: Buffer, at: number): void {
    const { bytes } = this.#blockOf(line);
    const start = (line & PLACE_MASK) * LINE_BYTES + ID_AT * 4;
    for (let byte = 0; byte < ID_BYTES; byte += 1) bytes[start + byte] = from[at + byte] ?? 0;
  }

  /** From 32 hexadecimal digits. */
  writeIdText(line: number, id: string): void {
    const { bytes } = this.#blockOf(line);
    bytes.write(id, (line & PLACE_MASK) * LINE_BYTES + ID_AT * 4, ID_BYTES, "hex");
  }

  writeNumbers(line: number, account: number, plan: number, restriction: number): void {
    const { words, accounts } = this.#blockOf(line);
    const place = line & PLACE_MASK;
    const start = place * LINE_WORDS;
    accounts[place] = account;
    words[start + ACCOUNT_AT] = account;
    words[start + PLAN_AT] = plan;
    words[start + RESTRICTION_AT] = restriction;
  }

  copy(from: number, to: number): void {
    const source = this.#blockOf(from).words;
    const target = this.#blockOf(to);
    const start = (from & PLACE_MASK) * LINE_WORDS;
    const line = source.subarray(start, start + LINE_WORDS);
    target.words.set(line, (to & PLACE_MASK) * LINE_WORDS);
    target.accounts[to & PLACE_MASK] = line[ACCOUNT_AT] ?? 0;
  }

  /** Of the first `count` lines those whose account's number is marked with 1. */
  linesOf(marks: Uint8Array, count: number): readonly number[] {
    const found: number[] = [];
    for (const [number, { accounts }] of this.#blocks.entries()) {
      const first = number << BLOCK_BITS;
      const end = Math.min(count - first, BLOCK_LINES);
      for (let place = 0; place < end; place += 1) {
        if (marks[accounts[place] ?? 0] === 1) found.push(first + place);
      }
    }
    return found;
  }

  /** Whether the line has the digest that begins there; takes as long whichever bits differ. */
  isOf(line: number, bytes: Buffer, at: number): boolean {
    const { words } = this.#blockOf(line);
    const start = (line & PLACE_MASK) * LINE_WORDS;
    let difference = 0;
    for (let word = 0; word < DIGEST_WORDS; word += 1) {
      difference |= (words[start + word] ?? 0) ^ bytes.readUInt32LE(at + word * 4);
    }
    return difference === 0;
  }

  digestOf(line: number): Buffer {
    const sha256 = Buffer.allocUnsafe(DIGEST_WORDS * 4);
    for (let word = 0; word < DIGEST_WORDS; word += 1) {
      sha256.writeUInt32LE(this.wordOf(line, word), word * 4);
    }
    return sha256;
  }

  /** 32 hexadecimal digits. */
  idOf(line: number): string {
    const { bytes } = this.#blockOf(line);
    const start = (line & PLACE_MASK) * LINE_BYTES + ID_AT * 4;
    return bytes.toString("hex", start, start + ID_BYTES);
  }

  accountOf(line: number): number {
    return this.wordOf(line, ACCOUNT_AT);
  }

  planOf(line: number): number {
    return this.wordOf(line, PLAN_AT);
  }

  restrictionOf(line: number): number {
    return this.wordOf(line, RESTRICTION_AT);
  }

  /** One of the first eight is 32 bits of the digest. */
  wordOf(line: number, word: number): number {
    return this.#blockOf(line).words[(line & PLACE_MASK) * LINE_WORDS + word] ?? 0;
  }

  #blockOf(line: number): Block {
    const number = line >>> BLOCK_BITS;
    const known = this.#blocks[number];
    if (known !== undefined) return known;
    const bytes = Buffer.alloc(BLOCK_LINES * LINE_BYTES);
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, BLOCK_LINES * LINE_WORDS);
    const block = { words, bytes, accounts: new Uint32Array(BLOCK_LINES) };
    this.#blocks[number] = block;
    return block;
  }
}
