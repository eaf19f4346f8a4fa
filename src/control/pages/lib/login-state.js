/**
 * The login state shared by all pages of this browser: they use one session, so a change that one
 * page detects applies to the others. A page of another account, or of none, is reloaded; a page
 * whose own session has ended keeps its content except the name, and shows a notice.
 */

/** @typedef {string | null} AccountId null: nobody is logged in */

const ENDED = "loginended";
const channel = new BroadcastChannel("login");

/** @type {AccountId | undefined} undefined until it is known */
let shown;
let ended = false;

channel.addEventListener("message", async ({ data }) => {
  if (shown === undefined || data === own()) return;
  // The other page may have sent its request while a login was being renewed: the server decides.
  const account = await askedAccount();
  if (account !== undefined && account !== own()) location.reload();
});

/** The account of this page, as far as known. @returns {AccountId} */
function own() {
  return ended ? null : (shown ?? null);
}

/** @returns {Promise<AccountId | undefined>} undefined when the server does not respond */
async function askedAccount() {
  try {
    const init = { headers: { "x-unattended": "1" }, cache: /** @type {const} */ ("no-store") };
    const response = await fetch("/api/v1/me", init);
    if (response.status === 401) return null;
    return response.ok ? (await response.json()).account.id : undefined;
  } catch {
    // Unreachable: there is no reason to discard this page's content.
    return undefined;
  }
}

/** Sets the account of this page. @param {AccountId} account */
export function showsAccount(account) {
  shown = account;
  ended = false;
  channel.postMessage(account);
}

/** The session of this browser has ended. */
export function loginEnded() {
  ended = true;
  channel.postMessage(null);
  document.dispatchEvent(new Event(ENDED));
}

/** @param {() => void} act */
export function onLoginEnded(act) {
  document.addEventListener(ENDED, act);
}
