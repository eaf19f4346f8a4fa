/**
 * Configuration that this version does not support. The keys are valid, so that files need not
 * change with the version, but an edge fails to start instead of silently ignoring them.
 */

import type { Config } from "./config.ts";

/** One message with the key for each unsupported setting. */
export function unavailable(config: Config): readonly string[] {
  const messages: string[] = [];
  if (config.quic.listen !== null) {
    messages.push("quic.listen: QUIC submission is not available in this version");
  }
  return messages;
}
