/**
 * Decides whether MQTT connections may be read.
 *
 * Owns: the memory that they use, and which of them wait for room. Does not own: how much room there is (admission.ts).
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
  readonly capacity: Pick<Capacity, 'forceReserve' | 'reserve' | 'release' | 'backpressureReason'>
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
  resumeWhenRoom(reader: Reader): void {
    this.#waiting.add(reader)
  }

  forget(reader: Reader): void {
    this.#waiting.delete(reader)
  }

  /** Reserves memory for bytes that were already read, even above the bound. */
  forceReserve(bytes: number): void {
    this.#options.capacity.forceReserve(bytes)
    this.check()
  }

  /** Reserves memory for an incoming packet. Returns false if there is not enough. */
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
      // If the room runs out during the loop, the remaining readers wait again.
      for (const reader of waiting) reader.resume()
    }, sessionLimits.roomPollMs)
  }
}
