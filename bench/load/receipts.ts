/**
 * Receipt to wire of each transaction, from the edge's own receipts, requested after the run. These
 * are exact, whereas the edge's histogram has ranges only.
 */

const PARALLEL = 16;
/** Maximum number of receipt requests; longer runs are sampled evenly. */
const QUESTIONS_MAX = 20_000;

/** In microseconds by transaction; NaN where no receipt exists or no delivery was sent. */
export async function wireTimes(
  url: string,
  key: string,
  signatures: readonly (string | null)[],
  first: number,
): Promise<Float64Array> {
  const wireUs = new Float64Array(signatures.length).fill(Number.NaN);
  const step = Math.max(1, Math.ceil((signatures.length - first) / QUESTIONS_MAX));
  let next = first;
  const ask = async (): Promise<void> => {
    while (next < signatures.length) {
      const index = next;
      next += step;
      const signature = signatures[index] ?? null;
      if (signature !== null) wireUs[index] = await wireTime(url, key, signature);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, ask));
  return wireUs;
}

async function wireTime(url: string, key: string, signature: string): Promise<number> {
  const response = await fetch(`${url}/api/v1/transactions/${signature}`, {
    headers: { "api-x-token": key },
  });
  const body: unknown = await response.json();
  if (typeof body !== "object" || body === null || !("timings" in body)) return Number.NaN;
  const { timings } = body;
  if (typeof timings !== "object" || timings === null) return Number.NaN;
  const sentUs = "first_sent_us" in timings ? timings.first_sent_us : null;
  return typeof sentUs === "number" ? sentUs : Number.NaN;
}
