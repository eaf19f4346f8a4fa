/** Places that accounts share: a bound on all of them together, and one on each account. */

export class Places {
  readonly #most: number;
  readonly #mostEach: number;
  readonly #taken = new Map<string, number>();
  #sum = 0;

  constructor(most: number, mostEach: number) {
    this.#most = most;
    this.#mostEach = mostEach;
  }

  /** Takes a place: null when there was one, else whose bound is reached. */
  take(account: string): "account" | "all" | null {
    const taken = this.#taken.get(account) ?? 0;
    if (taken >= this.#mostEach) return "account";
    if (this.#sum >= this.#most) return "all";
    this.#taken.set(account, taken + 1);
    this.#sum += 1;
    return null;
  }

  /** Gives back a place that was taken. */
  leave(account: string): void {
    const taken = this.#taken.get(account) ?? 0;
    if (taken <= 1) this.#taken.delete(account);
    else this.#taken.set(account, taken - 1);
    this.#sum -= 1;
  }
}
