/**
 * Receipt to wire of each transaction, from the edge's own receipts, requested after the run. These
 * are exact, whereas the edge's histogram has ranges only.
 */

const PARALLEL = 16;
/** Maximum number of receipt requests; longer runs are sampled evenly. */
const QUESTIONS_MAX = 20_000;
/** Maximum number of transactions of which the ends are requested. */
const ENDS_MAX = 1_000;

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
  const { timings } = await receiptOf(url, key, signature);
  if (typeof timings !== "object" || timings === null) return Number.NaN;
  const sentUs = "first_sent_us" in timings ? timings.first_sent_us : null;
  return typeof sentUs === "number" ? sentUs : Number.NaN;
}

/** Empty where there is none. */
async function receiptOf(
  url: string,
  key: string,
  signature: string,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${url}/api/v1/transactions/${signature}`, {
    headers: { "api-x-token": key },
  });
  const body: unknown = await response.json();
  // Any object is a record of unknown values.
  return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
}

/** How the receipts of these transactions say that they ended, each with its count. */
export async function endsOf(
  url: string,
  key: string,
  signatures: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const signature of signatures.slice(0, ENDS_MAX)) {
    const { state, leaders, landing } = await receiptOf(url, key, signature);
    const deliveries = Array.isArray(leaders) ? leaders : [];
    const ends = deliveries.map((each) => `${each.state} ${each.reason ?? ""}`.trim());
    const reason = (landing as { reason?: string | null } | undefined)?.reason;
    const end = `${state ?? "no receipt"} ${reason ?? ""}: ${ends.join(", ")}`;
    counts[end] = (counts[end] ?? 0) + 1;
  }
  return counts;
}
