/**
 * The rows of the key table as numbers: all data of a key takes 64 contiguous bytes, one CPU cache
 * line, so that a key not used recently costs one memory access. Blocks are added and never copied.
 * `entry-store.ts` maps the numbers to names.
 *
 * Hot path: reading allocates nothing but the text of an id.
 */

/** Contents of an entry: digest, id and four numbers. */
const ENTRY_WORDS = 16;
const ENTRY_BYTES = ENTRY_WORDS * 4;
const DIGEST_WORDS = 8;
const ID_AT = DIGEST_WORDS;
const ID_BYTES = 16;
const ACCOUNT_AT = 12;
const PLAN_AT = 13;
const POLICY_AT = 14;
const IS_DERIVED_AT = 15;

/** Entries per block; a power of two. */
const BLOCK_BITS = 12;
const BLOCK_ENTRIES = 1 << BLOCK_BITS;
const PLACE_MASK = BLOCK_ENTRIES - 1;

interface Block {
  readonly words: Uint32Array;
  /** The same memory. */
  readonly bytes: Buffer;
  /** A second copy of each entry's account for scans: a sixteenth of the memory to read. */
  readonly accounts: Uint32Array;
}

export class KeyEntries {
  readonly #blocks: Block[] = [];

  /** Writes the digest into an existing entry, or into the first one after them. */
  writeDigest(entry: number, from: Buffer, at: number): void {
    const { words } = this.#blockOf(entry);
    const start = (entry & PLACE_MASK) * ENTRY_WORDS;
    for (let word = 0; word < DIGEST_WORDS; word += 1) {
      words[start + word] = from.readUInt32LE(at + word * 4);
    }
  }

  writeId(entry: number, from: Buffer, at: number): void {
    const { bytes } = this.#blockOf(entry);
    const start = (entry & PLACE_MASK) * ENTRY_BYTES + ID_AT * 4;
    for (let byte = 0; byte < ID_BYTES; byte += 1) bytes[start + byte] = from[at + byte] ?? 0;
  }

  /** From 32 hexadecimal digits. */
  writeIdText(entry: number, id: string): void {
    const { bytes } = this.#blockOf(entry);
    bytes.write(id, (entry & PLACE_MASK) * ENTRY_BYTES + ID_AT * 4, ID_BYTES, "hex");
  }

  writeNumbers(
    entry: number,
    account: number,
    plan: number,
    policy: number,
    isDerived: boolean,
  ): void {
    const { words, accounts } = this.#blockOf(entry);
    const place = entry & PLACE_MASK;
    const start = place * ENTRY_WORDS;
    accounts[place] = account;
    words[start + ACCOUNT_AT] = account;
    words[start + PLAN_AT] = plan;
    words[start + POLICY_AT] = policy;
    words[start + IS_DERIVED_AT] = isDerived ? 1 : 0;
  }

  copy(from: number, to: number): void {
    const source = this.#blockOf(from).words;
    const target = this.#blockOf(to);
    const start = (from & PLACE_MASK) * ENTRY_WORDS;
    const entry = source.subarray(start, start + ENTRY_WORDS);
    target.words.set(entry, (to & PLACE_MASK) * ENTRY_WORDS);
    target.accounts[to & PLACE_MASK] = entry[ACCOUNT_AT] ?? 0;
  }

  /** Those of the first `count` entries whose account number is marked with 1. */
  entriesOf(marks: Uint8Array, count: number): readonly number[] {
    const found: number[] = [];
    for (const [number, { accounts }] of this.#blocks.entries()) {
      const first = number << BLOCK_BITS;
      const end = Math.min(count - first, BLOCK_ENTRIES);
      for (let place = 0; place < end; place += 1) {
        if (marks[accounts[place] ?? 0] === 1) found.push(first + place);
      }
    }
    return found;
  }

  /** Whether the entry has the digest at `at`; takes the same time whichever bits differ. */
  matches(entry: number, bytes: Buffer, at: number): boolean {
    const { words } = this.#blockOf(entry);
    const start = (entry & PLACE_MASK) * ENTRY_WORDS;
    let difference = 0;
    for (let word = 0; word < DIGEST_WORDS; word += 1) {
      difference |= (words[start + word] ?? 0) ^ bytes.readUInt32LE(at + word * 4);
    }
    return difference === 0;
  }

  digestOf(entry: number): Buffer {
    const sha256 = Buffer.allocUnsafe(DIGEST_WORDS * 4);
    for (let word = 0; word < DIGEST_WORDS; word += 1) {
      sha256.writeUInt32LE(this.wordOf(entry, word), word * 4);
    }
    return sha256;
  }

  /** 32 hexadecimal digits. */
  idOf(entry: number): string {
    const { bytes } = this.#blockOf(entry);
    const start = (entry & PLACE_MASK) * ENTRY_BYTES + ID_AT * 4;
    return bytes.toString("hex", start, start + ID_BYTES);
  }

  accountOf(entry: number): number {
    return this.wordOf(entry, ACCOUNT_AT);
  }

  planOf(entry: number): number {
    return this.wordOf(entry, PLAN_AT);
  }

  policyOf(entry: number): number {
    return this.wordOf(entry, POLICY_AT);
  }

  isDerived(entry: number): boolean {
    return this.wordOf(entry, IS_DERIVED_AT) === 1;
  }

  /** The first eight words are 32 bits of the digest each. */
  wordOf(entry: number, word: number): number {
    return this.#blockOf(entry).words[(entry & PLACE_MASK) * ENTRY_WORDS + word] ?? 0;
  }

  #blockOf(entry: number): Block {
    const number = entry >>> BLOCK_BITS;
    const known = this.#blocks[number];
    if (known !== undefined) return known;
    const bytes = Buffer.alloc(BLOCK_ENTRIES * ENTRY_BYTES);
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, BLOCK_ENTRIES * ENTRY_WORDS);
    const block = { words, bytes, accounts: new Uint32Array(BLOCK_ENTRIES) };
    this.#blocks[number] = block;
    return block;
  }
}
