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

channel.addEventListener("message", async ({ data }) => {
  if (shown === undefined || data === own()) return;
  // The other page may have met the moment in which a login was renewed: the server has the last word.
  const account = await askedAccount();
  if (account !== undefined && account !== own()) location.reload();
});

/** Whose this page is, as far as it knows. @returns {AccountId} */
function own() {
  return ended ? null : (shown ?? null);
}

/** @returns {Promise<AccountId | undefined>} undefined where the server does not say */
async function askedAccount() {
  try {
    const init = { headers: { "x-unattended": "1" }, cache: /** @type {const} */ ("no-store") };
    const response = await fetch("/api/v1/me", init);
    if (response.status === 401) return null;
    return response.ok ? (await response.json()).account.id : undefined;
  } catch {
    // Not reached: nothing is known that would be worth what this page holds.
    return undefined;
  }
}

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
