/**
 * Who is logged in, over all pages of this browser: they share one session, so what one of them
 * learns holds for the others. A page of another account, or of none, is loaded anew; a page whose
 * own session has ended keeps what it shows but the name, and says so.
 */

/** @typedef {string | null} AccountId null: nobody is logged in */

const ENDED = "loginended";
const channel = new BroadcastChannel("login");

/** @type {AccountId | undefined} undefined until it is known */
let shown;
let ended = false;

channel.addEventListener("message", ({ data }) => {
  if (shown === undefined || data === shown || (ended && data === null)) return;
  location.reload();
});

/** This page belongs to that account. @param {AccountId} account */
export function showsAccount(account) {
  shown = account;
  ended = false;
  channel.postMessage(account);
}

/** The server knows nobody by this browser's session any more. */
export function loginEnded() {
  ended = true;
  channel.postMessage(null);
  document.dispatchEvent(new Event(ENDED));
}

/** @param {() => void} act */
export function onLoginEnded(act) {
  document.addEventListener(ENDED, act);
}
