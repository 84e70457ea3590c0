/**
 * The number of connections that this node may have open, all protocols together.
 *
 * Law: every place that was taken is released once, when its socket has closed.
 */
export class ConnectionBudget {
  readonly max: number
  #open = 0
  #dropped = 0

  constructor(max: number) {
    this.max = max
  }

  get open(): number {
    return this.#open
  }

  /** Connections that were closed at once because there were too many. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes a place. False, and counted as dropped, if there is none. */
  tryTake(): boolean {
    if (this.#open >= this.max) {
      this.#dropped += 1
      return false
    }
    this.#open += 1
    return true
  }

  release(): void {
    this.#open -= 1
  }

  /** Counts a connection that the listener dropped before it was offered here. */
  countDropped(): void {
    this.#dropped += 1
  }
}
