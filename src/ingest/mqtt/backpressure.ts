/**
 * Whether MQTT connections may be read.
 *
 * Owns: the memory that they take, and those that wait for room. Does not own: how much room there is (admission.ts).
 * Law: without room, only connections with reserved memory are read. Waiting ones resume in order of arrival.
 */
import type { Clock } from '#lib/clock.ts'
import type { Capacity } from '../admission.ts'
import { Rejection } from '../rejection.ts'
import { sessionLimits } from './limits.ts'

/** A connection with unread bytes. */
interface Reader {
  resume(): void
}

export type BackpressureOptions = {
  readonly capacity: Pick<Capacity, 'take' | 'reserve' | 'release' | 'backpressureReason'>
  readonly clock: Clock
}

export class Backpressure {
  readonly #options: BackpressureOptions
  readonly #waiting = new Set<Reader>()
  #hasRoom = true
  #cancelPoll = (): void => undefined

  constructor(options: BackpressureOptions) {
    this.#options = options
  }

  get hasRoom(): boolean {
    return this.#hasRoom
  }

  /** Resumes the reader once there may be room. */
  await(reader: Reader): void {
    this.#waiting.add(reader)
  }

  forget(reader: Reader): void {
    this.#waiting.delete(reader)
  }

  /** Counts bytes that were read, even above the bound: they must go somewhere. */
  take(bytes: number): void {
    this.#options.capacity.take(bytes)
    this.check()
  }

  /** Reserves memory for a packet on its way in. False if there is none. */
  tryReserve(bytes: number): boolean {
    try {
      this.#options.capacity.reserve(bytes)
    } catch (error) {
      if (!(error instanceof Rejection)) throw error
      return false
    }
    this.check()
    return true
  }

  release(bytes: number): void {
    this.#options.capacity.release(bytes)
  }

  check(): void {
    if (this.#hasRoom && this.#isFull()) {
      this.#hasRoom = false
      this.#poll()
    }
  }

  stop(): void {
    this.#cancelPoll()
  }

  #isFull(): boolean {
    return this.#options.capacity.backpressureReason() !== undefined
  }

  #poll(): void {
    this.#cancelPoll = this.#options.clock.setTimer(() => {
      if (this.#isFull()) {
        this.#poll()
        return
      }
      this.#hasRoom = true
      const waiting = [...this.#waiting]
      this.#waiting.clear()
      // If the room is used up on the way, the rest wait again.
      for (const reader of waiting) reader.resume()
    }, sessionLimits.roomPollMs)
  }
}
