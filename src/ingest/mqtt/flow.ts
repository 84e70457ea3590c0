/**
 * When a connection is read.
 *
 * Owns: why it is not, and what came that is not read yet. Does not own: what the bytes mean, and the reasons themselves.
 * Law: while there is a reason to pause, nothing is read; without one, nothing waits unread.
 */
import type { Wire } from './wire.ts'

/** Why nothing is read: bits, any of which is enough. `turn`: others are read first. */
export const pauses = { noRoom: 1, inFlight: 2, unsent: 4, draining: 8, turn: 16 } as const

export type FlowOptions = {
  readonly wire: Pick<Wire, 'pause' | 'resume'>
  /** Reads from the chunk, and answers how many bytes of it: less than all where others are to have their turn. */
  readonly read: (chunk: Buffer) => number
  readonly afterRead: () => void
  readonly lacksRoom: () => boolean
  /** Has `goOn(pauses.noRoom)` called once there may be room. */
  readonly awaitRoom: () => void
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

  isPausedFor(why: number): boolean {
    return (this.#pauses & why) !== 0
  }

  /** Memory that waits. */
  get unreadBytes(): number {
    let bytes = 0
    for (const chunk of this.#unread) bytes += chunk.length
    return bytes
  }

  receive(chunk: Buffer): void {
    // A wire that is paused may still bring what came with the bytes before.
    this.#unread.push(chunk)
    this.#readOn()
  }

  pause(why: number): void {
    const before = this.#pauses
    this.#pauses = before | why
    if (before === 0 && !this.#isClosed) this.#options.wire.pause()
  }

  goOn(why: number): void {
    if ((this.#pauses & why) === 0) return
    this.#pauses &= ~why
    if (this.#pauses !== 0 || this.#isClosed) return
    this.#readOn()
    if (this.#pauses === 0 && !this.#isClosed) this.#options.wire.resume()
  }

  /** Nothing more is read. The wire goes on, to see the client close. */
  close(): void {
    this.#isClosed = true
    this.#unread.length = 0
  }

  #readOn(): void {
    const { read, afterRead, lacksRoom, awaitRoom } = this.#options
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
        setImmediate(() => this.goOn(pauses.turn))
      } else this.#unread.shift()
      afterRead()
    }
  }
}
