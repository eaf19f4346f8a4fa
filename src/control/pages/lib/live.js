/**
 * The stream of live numbers. The browser connects again by itself after a cut; where the server
 * refuses the stream altogether, it is tried anew after a while, because that may pass too.
 */

import { after } from "./clock.js";

const AGAIN_MS = 5000;

/**
 * @param {AbortSignal} signal
 * @param {{onUsage: (usage: any) => void, onState: (state: "live" | "lost" | "ended") => void}} to
 */
export function listen(signal, to) {
  if (signal.aborted) return;
  const source = new EventSource("/api/v1/live");
  const close = () => source.close();
  signal.addEventListener("abort", close, { once: true });
  source.addEventListener("open", () => to.onState("live"));
  source.addEventListener("usage", (event) => to.onUsage(JSON.parse(event.data)));
  source.addEventListener("ended", () => {
    close();
    to.onState("ended");
  });
  source.addEventListener("error", () => {
    if (signal.aborted) return;
    to.onState("lost");
    if (source.readyState !== EventSource.CLOSED) return;
    signal.removeEventListener("abort", close);
    after(AGAIN_MS, () => listen(signal, to), signal);
  });
}
