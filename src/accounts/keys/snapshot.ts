/**
 * Decodes all valid keys from Postgres's binary copy format: no string is created for a number, and
 * only one for an account whose keys are consecutive.
 *
 * The format is "COPY … (FORMAT binary)" in the Postgres 18 manual, 2026-11: a header of at least
 * 19 bytes; for each row the field count and each field preceded by its length; -1 at the end. All
 * numbers are big-endian; a length of -1 is null.
 */

import type { LentKey, Plan } from "./key.ts";
import { policyOf } from "./records.ts";

/** All valid keys, and the public keys that follow from API keys. */
export const KEY_ROWS_SQL = `(
  select *, false as is_derived from touchdown.edge_keys
  union all select *, true from touchdown.edge_client_keys
)`;

/** The query whose output `createKeySnapshotReader` reads. */
export const KEY_SNAPSHOT_SQL = `copy (
  select sha256, key_id, account_id, plan, expires_at,
    case when cidrs <> '{}' then array_to_string(cidrs, ' ') end, rate_per_second, burst,
    is_derived
  from ${KEY_ROWS_SQL} as keys
) to stdout (format binary)`;

/** Processes the copy chunk by chunk. */
export interface KeySnapshotReader {
  /** @throws RangeError when it is not Postgres's format */
  take(chunk: Buffer): void;
  /** @throws RangeError when the end is missing */
  finish(): void;
}

/** Passes each key to `put`. */
export function createKeySnapshotReader(
  plans: ReadonlyMap<string, Plan>,
  put: (key: LentKey) => void,
): KeySnapshotReader {
  /** Unread bytes of the last chunk. */
  let rest = Buffer.alloc(0);
  let isStarted = false;
  let isEnded = false;
  const accountOf = accountTexts();
  /** Field offsets of the current row. */
  const starts = new Int32Array(FIELDS);
  const lengths = new Int32Array(FIELDS);

  /** Offset of a field; `NULL` if it is null. */
  function at(field: number): number {
    return lengths[field] === NULL ? NULL : (starts[field] ?? 0);
  }

  function textOf(bytes: Buffer, field: number): string {
    const start = starts[field] ?? 0;
    return bytes.toString("utf8", start, start + (lengths[field] ?? 0));
  }

  function keyOf(bytes: Buffer): LentKey {
    const name = textOf(bytes, PLAN);
    const plan = plans.get(name);
    if (plan === undefined) throw new RangeError(`a key is on plan ${name}, which is not there`);
    return {
      bytes,
      sha256At: at(SHA256),
      idAt: at(ID),
      account: accountOf(bytes, at(ACCOUNT)),
      plan,
      policy: isNarrowed() ? narrowedBy(bytes, plan) : null,
      isDerived: bytes[at(IS_DERIVED)] === 1,
    };
  }

  const isNarrowed = (): boolean => {
    return at(EXPIRES) !== NULL || at(CIDRS) !== NULL || at(RATE) !== NULL || at(BURST) !== NULL;
  };

  function narrowedBy(bytes: Buffer, plan: Plan): LentKey["policy"] {
    const [expires, rate, burst] = [at(EXPIRES), at(RATE), at(BURST)];
    const row = {
      expires: expires === NULL ? null : unixMsAt(bytes, expires),
      cidrs: at(CIDRS) === NULL ? null : textOf(bytes, CIDRS).split(" "),
      rate: rate === NULL ? null : bytes.readDoubleBE(rate),
      burst: burst === NULL ? null : bytes.readInt32BE(burst),
    };
    return policyOf(row, plan);
  }

  /** Locates the row's fields; returns the row's end, or -1 if it is incomplete. */
  function endOfRow(bytes: Buffer, start: number): number {
    let place = start + 2;
    for (let field = 0; field < FIELDS; field += 1) {
      if (place + 4 > bytes.length) return -1;
      const length = bytes.readInt32BE(place);
      starts[field] = place + 4;
      lengths[field] = length;
      place += 4 + Math.max(0, length);
    }
    return place <= bytes.length ? place : -1;
  }

  /** Reads one row or the end mark; returns its end, or -1 if it is incomplete. */
  function step(bytes: Buffer, start: number): number {
    if (start + 2 > bytes.length) return -1;
    const count = bytes.readInt16BE(start);
    if (count === END) {
      isEnded = true;
      return start + 2;
    }
    if (count !== FIELDS) throw new RangeError(`a key has ${count} fields, not ${FIELDS}`);
    const end = endOfRow(bytes, start);
    if (end !== -1) put(keyOf(bytes));
    return end;
  }

  return {
    take(chunk) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let place = 0;
      if (!isStarted) {
        place = headerEnd(bytes);
        isStarted = place !== -1;
      }
      let read = Math.max(0, place);
      while (place !== -1 && !isEnded) {
        place = step(bytes, read);
        if (place !== -1) read = place;
      }
      // A chunk is borrowed; its rest is at most one row.
      rest = read === bytes.length ? NOTHING : Buffer.from(bytes.subarray(read));
      if (rest.length > ROW_BYTES_MAX) throw new RangeError("a key is longer than any can be");
    },
    finish() {
      if (!isEnded) throw new RangeError("the copy of the keys has no end");
    },
  };
}

/** Offset of the first row; -1 if the header is incomplete. */
function headerEnd(bytes: Buffer): number {
  if (bytes.length < HEADER_BYTES) return -1;
  if (!bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE)) {
    throw new RangeError("this is no binary copy of Postgres");
  }
  const end = HEADER_BYTES + bytes.readInt32BE(HEADER_BYTES - 4);
  return end <= bytes.length ? end : -1;
}

/** The text of the uuid at an offset; the last text is cached for equal bytes. */
function accountTexts(): (bytes: Buffer, start: number) => string {
  const last = Buffer.alloc(UUID_BYTES);
  let text = uuidText(last, 0);
  return (bytes, start) => {
    if (last.compare(bytes, start, start + UUID_BYTES) === 0) return text;
    bytes.copy(last, 0, start, start + UUID_BYTES);
    text = uuidText(last, 0);
    return text;
  };
}

function uuidText(bytes: Buffer, start: number): string {
  const hex = bytes.toString("hex", start, start + UUID_BYTES);
  return UUID_CUTS.map((from, index) => hex.slice(from, UUID_CUTS[index + 1])).join("-");
}

/** A timestamptz, microseconds since 2000, as whole milliseconds since 1970. */
function unixMsAt(bytes: Buffer, start: number): number {
  const us = bytes.readInt32BE(start) * 2 ** 32 + bytes.readUInt32BE(start + 4);
  return Math.floor(us / 1_000) + POSTGRES_EPOCH_UNIX_MS;
}

const [SHA256, ID, ACCOUNT, PLAN, EXPIRES] = [0, 1, 2, 3, 4] as const;
const [CIDRS, RATE, BURST, IS_DERIVED] = [5, 6, 7, 8] as const;
const FIELDS = 9;
const END = -1;
const NULL = -1;
const UUID_BYTES = 16;
const UUID_CUTS = [0, 8, 12, 16, 20] as const;
const POSTGRES_EPOCH_UNIX_MS = Date.UTC(2000, 0, 1);
const SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
const HEADER_BYTES = SIGNATURE.length + 8;
/** A plan name, 32 networks and the rest are well below this. */
const ROW_BYTES_MAX = 64 * 1024;
const NOTHING = Buffer.alloc(0);
