/**
 * The stream of live numbers. The browser connects again by itself after a cut; where the server
 * refuses the stream altogether, it is asked why, because the browser does not tell, and tried anew
 * after a while: too many open pages may become fewer. Only the end of the session is the end.
 */

import { after } from "./clock.js";
import { loginEnded } from "./login-state.js";

const AGAIN_MS = 5000;
const PATH = "/api/v1/live";

/**
 * full: too many pages are open; stale: the server itself has no newer numbers
 * @typedef {"live" | "stale" | "lost" | "full" | "ended"} LiveState
 */

/**
 * @param {AbortSignal} signal
 * @param {{onUsage: (usage: any) => void,
 *   onState: (state: LiveState, since?: string | null) => void}} to `since`: with `stale`, when the
 *   numbers were current last; null when they never were
 */
export function listen(signal, to) {
  if (signal.aborted) return;
  const source = new EventSource(PATH);
  const close = () => source.close();
  signal.addEventListener("abort", close, { once: true });
  source.addEventListener("open", () => to.onState("live"));
  source.addEventListener("usage", (event) => {
    to.onState("live");
    to.onUsage(JSON.parse(event.data));
  });
  source.addEventListener("stale", (event) => to.onState("stale", JSON.parse(event.data).since));
  source.addEventListener("ended", () => {
    close();
    loginEnded();
    to.onState("ended");
  });
  source.addEventListener("error", async () => {
    if (signal.aborted) return;
    if (source.readyState !== EventSource.CLOSED) {
      to.onState("lost");
      return;
    }
    signal.removeEventListener("abort", close);
    const why = await refusal(signal);
    if (signal.aborted) return;
    if (why === "ended") loginEnded();
    to.onState(why);
    if (why !== "ended") after(AGAIN_MS, () => listen(signal, to), signal);
  });
}

/** Why the stream is not to be had. @param {AbortSignal} signal @returns {Promise<LiveState>} */
async function refusal(signal) {
  const enough = new AbortController();
  try {
    const either = AbortSignal.any([signal, enough.signal]);
    const { status } = await fetch(PATH, { cache: "no-store", signal: either });
    return status === 401 ? "ended" : status === 429 ? "full" : "lost";
  } catch {
    // Nobody answers, or the page is left.
    return "lost";
  } finally {
    enough.abort();
  }
}
