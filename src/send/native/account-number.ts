/**
 * The number by which the native engine knows an account: a hash of its id of 53 bits, so that
 * threads need no common table. Two accounts with one number would share their landed share.
 *
 * Hot path: `accountNumber`.
 */

const LOW = 2 ** 32;
/** Bits of the high half, so that the number stays exact. */
const HIGH_MASK = 2 ** 21 - 1;

let [lastAccount, lastNumber] = ["", 0];

export function accountNumber(account: string): number {
  // A transaction goes to several leaders.
  if (account !== lastAccount) [lastAccount, lastNumber] = [account, hash(account)];
  return lastNumber;
}

/** cyrb53, by its author in the public domain. */
function hash(text: string): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 0x9e3779b1);
    b = Math.imul(b ^ code, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return LOW * (b & HIGH_MASK) + (a >>> 0);
}
