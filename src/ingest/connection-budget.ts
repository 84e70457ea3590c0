/**
 * Limits the number of open connections of this node, over all protocols.
 *
 * Law: every slot that was acquired is released once, when its socket has closed.
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

  /** Acquires a slot. Returns false, and counts a dropped connection, if none is free. */
  tryAcquire(): boolean {
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
