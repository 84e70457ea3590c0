/**
 * Pauses and resumes reading from a connection.
 *
 * Owns: the current reasons to pause, and bytes that arrived and are not read yet. Does not own: the meaning of the bytes, when a reason applies.
 * Law: while there is a reason to pause, nothing is read; without one, nothing waits unread.
 */
import type { Clock } from '#lib/clock.ts'
import type { Wire } from './wire/wire.ts'

/** Reasons to pause, as bits. Any of them is enough. `turn`: other connections are read first. */
export const pauses = { noRoom: 1, inFlight: 2, unsent: 4, draining: 8, turn: 16 } as const

export type FlowOptions = {
  readonly wire: Pick<Wire, 'pause' | 'resume'>
  /** Reads from the chunk and returns how many bytes it read: fewer than all if other connections should be read first. */
  readonly read: (chunk: Buffer) => number
  readonly afterRead: () => void
  readonly lacksRoom: () => boolean
  /** Must arrange that `resume(pauses.noRoom)` is called once there may be room. */
  readonly awaitRoom: () => void
  readonly clock: Pick<Clock, 'nextTurn'>
}

export class Flow {
  readonly #options: FlowOptions
  readonly #unread: Buffer[] = []
  #pauses = 0
  #isClosed = false

  constructor(options: FlowOptions) {
    this.#options = options
  }

  get isPaused(): boolean {
    return this.#pauses !== 0
  }

  isPausedFor(reason: number): boolean {
    return (this.#pauses & reason) !== 0
  }

  get unreadBytes(): number {
    let bytes = 0
    for (const chunk of this.#unread) bytes += chunk.length
    return bytes
  }

  receive(chunk: Buffer): void {
    // A paused wire may still deliver bytes that arrived with the ones before.
    this.#unread.push(chunk)
    this.#readUnread()
  }

  pause(reason: number): void {
    const before = this.#pauses
    this.#pauses = before | reason
    if (before === 0 && !this.#isClosed) this.#options.wire.pause()
  }

  resume(reason: number): void {
    if ((this.#pauses & reason) === 0) return
    this.#pauses &= ~reason
    if (this.#pauses !== 0 || this.#isClosed) return
    this.#readUnread()
    if (this.#pauses === 0 && !this.#isClosed) this.#options.wire.resume()
  }

  /** Stops reading. The wire stays open, so that the client's close is noticed. */
  close(): void {
    this.#isClosed = true
    this.#unread.length = 0
  }

  #readUnread(): void {
    const { read, afterRead, lacksRoom, awaitRoom, clock } = this.#options
    for (let chunk = this.#unread[0]; chunk !== undefined && this.#pauses === 0; chunk = this.#unread[0]) {
      if (lacksRoom()) {
        this.pause(pauses.noRoom)
        awaitRoom()
        return
      }
      const bytes = read(chunk)
      if (this.#isClosed) return
      if (bytes < chunk.length) {
        this.#unread[0] = chunk.subarray(bytes)
        this.pause(pauses.turn)
        clock.nextTurn(() => this.resume(pauses.turn))
      } else this.#unread.shift()
      afterRead()
    }
  }
}
