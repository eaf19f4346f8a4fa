/** Permits shared by accounts: one bound on their total, and one per account. */

export class Quota {
  readonly #most: number;
  readonly #mostEach: number;
  readonly #used = new Map<string, number>();
  #sum = 0;

  constructor(most: number, mostEach: number) {
    this.#most = most;
    this.#mostEach = mostEach;
  }

  /** Acquires a permit: null on success, else whose quota is exhausted. */
  acquire(account: string): "account" | "all" | null {
    const used = this.#used.get(account) ?? 0;
    if (used >= this.#mostEach) return "account";
    if (this.#sum >= this.#most) return "all";
    this.#used.set(account, used + 1);
    this.#sum += 1;
    return null;
  }

  /** Returns a permit. */
  release(account: string): void {
    const used = this.#used.get(account) ?? 0;
    if (used <= 1) this.#used.delete(account);
    else this.#used.set(account, used - 1);
    this.#sum -= 1;
  }
}
