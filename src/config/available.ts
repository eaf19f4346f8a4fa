/**
 * Configuration that an edge of these settings cannot honor. The keys are valid, so that files need
 * not change with the version, but an edge fails to start instead of silently ignoring them.
 */

import type { Config } from "./config.ts";

/** One message with the key for each unsupported setting. */
export function unavailable({ quic, send, http }: Config): readonly string[] {
  if (quic.listen === null) return [];
  const needed = "quic.listen: QUIC clients are served by the native engine's threads";
  if (send.engine === "portable") return [`${needed}, and send.engine is "portable"`];
  if (http.threads === 0) return [`${needed}, and http.threads is 0; give it 1 or more`];
  return [];
}
