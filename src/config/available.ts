/**
 * What a configuration may ask for and this version cannot do. The keys are valid, so that a file
 * need not change with the version, but an edge refuses to start instead of leaving something out
 * in silence.
 */

import type { Config } from "./config.ts";

/** One sentence, with its key, for each thing that an edge of this version cannot do. */
export function unavailable(config: Config): readonly string[] {
  const messages: string[] = [];
  if (config.quic.listen !== null) {
    messages.push("quic.listen: QUIC submission is not available in this version");
  }
  return messages;
}
