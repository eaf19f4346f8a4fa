/**
 * The format of generated keys: `td_<environment>_<27 characters><6 characters>`.
 *
 * The 27 characters are 160 random bits in base 62, the 6 are a CRC-32 of everything before them.
 * The prefix lets scanners find leaked keys; the checksum distinguishes a typing error from an
 * unknown key without a look-up. Other formats are valid too: a keys file may contain any.
 */

import { randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

/** A new key. `environment` is a word of lower-case letters and digits. */
export function generateToken(environment: string): string {
  if (!ENVIRONMENT.test(environment)) {
    throw new RangeError("an environment is 1 to 16 small letters or digits");
  }
  const start = `td_${environment}_${randomDigits(RANDOM_DIGITS)}`;
  return start + checksum(start);
}

/** Whether this has the generated format but the wrong checksum. */
export function looksMistyped(token: string): boolean {
  if (!token.startsWith("td_")) return false;
  if (!FORM.test(token)) return true;
  const split = token.length - CHECKSUM_DIGITS;
  return checksum(token.slice(0, split)) !== token.slice(split);
}

/** Uniform digits: bytes beyond the last multiple of 62 are discarded. */
function randomDigits(count: number): string {
  let digits = "";
  while (digits.length < count) {
    for (const byte of randomBytes(count)) {
      if (byte < UNBIASED_MAX && digits.length < count) digits += DIGITS.charAt(byte % BASE);
    }
  }
  return digits;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_DIGITS; i += 1) {
    digits = DIGITS.charAt(rest % BASE) + digits;
    rest = Math.floor(rest / BASE);
  }
  return digits;
}

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE = DIGITS.length;
const UNBIASED_MAX = 256 - (256 % BASE);
/** 62^27 is above 2^160. */
const RANDOM_DIGITS = 27;
/** 62^6 is above 2^32. */
const CHECKSUM_DIGITS = 6;
const ENVIRONMENT = /^[a-z0-9]{1,16}$/;
const FORM = /^td_[a-z0-9]{1,16}_[0-9A-Za-z]{33}$/;
