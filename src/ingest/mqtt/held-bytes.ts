/**
 * Bytes of one connection that are not read to the end of a packet.
 *
 * Owns: how the room of the endpoint counts them: few as unread, many as bytes in flight. Does not own: the bytes.
 * Law: `release` gives back everything.
 */
import type { Room } from '../gate/node-room.ts'
import type { Backpressure } from './backpressure.ts'
import { type Flow, pauses } from './flow.ts'
import { sessionLimits } from './limits.ts'

export class HeldBytes {
  readonly #room: Room
  readonly #backpressure: Backpressure
  readonly #flow: Pick<Flow, 'resume'>
  /** Part of them that is counted as bytes in flight. */
  #reserved = 0
  #unread = 0

  constructor(room: Room, backpressure: Backpressure, flow: Pick<Flow, 'resume'>) {
    this.#room = room
    this.#backpressure = backpressure
    this.#flow = flow
  }

  /**
   * Whether nothing more may be read. A packet with reserved memory is read to its end, which releases the memory. Clients that send nothing are
   * not paused, so that thousands of them cost nothing.
   */
  get lacksRoom(): boolean {
    return this.#reserved === 0 && !this.#backpressure.hasRoom(this.#room)
  }

  /** Resumes reading once there may be room. Returns why these bytes cannot wait for that. */
  waitForRoom(bytes: number): string | undefined {
    this.#backpressure.resumeWhenRoom(this.#room, this)
    return this.#countUnread(bytes)
  }

  resume(): void {
    this.#flow.resume(pauses.noRoom)
  }

  /** Counts them as bytes in flight, once they exceed what every connection may hold. Returns why there is no room for them. */
  count(bytes: number): string | undefined {
    const reserved = bytes > sessionLimits.heldBytesFree ? bytes : 0
    const more = reserved - this.#reserved
    if (more < 0) this.#room.release(-more)
    const refusal = more > 0 ? this.#backpressure.tryReserve(this.#room, more) : undefined
    if (refusal !== undefined) return `${refusal}: connect again and send the message again`
    this.#reserved = reserved
    return bytes - reserved === this.#unread ? undefined : this.#countUnread(bytes - reserved)
  }

  /** Counts bytes that wait to be read. Returns why there is no room for them. */
  #countUnread(bytes: number): string | undefined {
    if (!this.#room.tryHold(bytes - this.#unread))
      return 'the connections to this endpoint hold too many unread bytes; use fewer, and connect again later'
    this.#unread = bytes
    return undefined
  }

  release(): void {
    this.#backpressure.forget(this.#room, this)
    this.#room.release(this.#reserved)
    this.#room.tryHold(-this.#unread)
    this.#reserved = 0
    this.#unread = 0
  }
}
