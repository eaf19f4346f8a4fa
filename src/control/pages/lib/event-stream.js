/**
 * The event stream of live usage. The browser reconnects automatically after a disconnect. If the
 * server rejects the stream, a request finds out why, because the browser does not report it, and
 * the stream is retried later: too many open pages may become fewer. Only the end of the session is
 * final. A stream on which nothing arrives for long is opened anew: the browser may not know that
 * its connection is lost, as after a pause of the device.
 */

import { after, every, now } from "./clock.js";
import { loginEnded } from "./login-state.js";

const AGAIN_MS = 5000;
/** The hour of the numbers moves each minute, so there is an event at least that often. */
const SILENT_MS_MAX = 90_000;
const LOOK_MS = 10_000;
const PATH = "/api/v1/live";

/**
 * full: too many pages are open; stale: the server has no newer numbers
 * @typedef {"live" | "stale" | "lost" | "full" | "ended"} LiveState
 */

/**
 * @param {AbortSignal} signal
 * @param {{onUsage: (usage: any) => void,
 *   onState: (state: LiveState, since?: string | null) => void}} to `since`: with `stale`, when the
 *   numbers were last current; null when never
 */
export function listen(signal, to) {
  if (signal.aborted) return;
  const source = new EventSource(PATH);
  let heardMs = now();
  const endLooks = every(LOOK_MS, look, signal);
  const close = () => {
    source.close();
    endLooks();
  };
  function look() {
    if (now() - heardMs < SILENT_MS_MAX) return;
    signal.removeEventListener("abort", close);
    close();
    to.onState("lost");
    listen(signal, to);
  }
  for (const event of ["open", "usage", "stale", "error"]) {
    source.addEventListener(event, () => {
      heardMs = now();
    });
  }
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
    close();
    const why = await refusal(signal);
    if (signal.aborted) return;
    if (why === "ended") loginEnded();
    to.onState(why);
    if (why !== "ended") after(AGAIN_MS, () => listen(signal, to), signal);
  });
}

/** Why the stream was rejected. @param {AbortSignal} signal @returns {Promise<LiveState>} */
async function refusal(signal) {
  const enough = new AbortController();
  try {
    const either = AbortSignal.any([signal, enough.signal]);
    const { status } = await fetch(PATH, { cache: "no-store", signal: either });
    return status === 401 ? "ended" : status === 429 ? "full" : "lost";
  } catch {
    // The server does not respond, or the user leaves the page.
    return "lost";
  } finally {
    enough.abort();
  }
}
