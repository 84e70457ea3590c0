/**
 * Decides whether MQTT connections may be read.
 *
 * Owns: the memory that they use, and which of them wait for room. Does not own: how much room an endpoint has (endpoint-room.ts).
 * Law: without room for its endpoint, only a connection with reserved memory is read; connections to other endpoints are read on. Waiting
 * ones resume in order of arrival.
 */
import type { Clock } from '#lib/clock.ts'
import type { Room } from '../gate/node-room.ts'
import { Rejection } from '../gate/rejection.ts'
import { sessionLimits } from './limits.ts'

/** A connection with unread bytes. */
interface Reader {
  resume(): void
}

export class Backpressure {
  readonly #clock: Clock
  /** The rooms that are full, with the connections that wait for them. */
  readonly #full = new Map<Room, Set<Reader>>()
  #cancelPoll: (() => void) | undefined

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock
  }

  hasRoom(room: Room): boolean {
    return this.#full.size === 0 || !this.#full.has(room)
  }

  /** Resumes the reader once there may be room. */
  resumeWhenRoom(room: Room, reader: Reader): void {
    this.#full.get(room)?.add(reader)
  }

  forget(room: Room, reader: Reader): void {
    this.#full.get(room)?.delete(reader)
  }

  /** Called when the last connection to the room's endpoint is gone. */
  forgetRoom(room: Room): void {
    this.#full.delete(room)
  }

  /** Reserves memory for an incoming packet. Returns why there is not enough; undefined if it is reserved. */
  tryReserve(room: Room, bytes: number): string | undefined {
    try {
      room.reserve(bytes)
    } catch (error) {
      if (!(error instanceof Rejection)) throw error
      return error.message
    }
    this.check(room)
    return undefined
  }

  /** Notices that the room is full. */
  check(room: Room): void {
    if (!this.hasRoom(room) || room.backpressureReason() === undefined) return
    this.#full.set(room, new Set())
    if (this.#cancelPoll === undefined) this.#poll()
  }

  stop(): void {
    this.#cancelPoll?.()
  }

  #poll(): void {
    this.#cancelPoll = this.#clock.setTimer(() => {
      this.#cancelPoll = undefined
      for (const [room, waiting] of this.#full) {
        if (room.backpressureReason() !== undefined) continue
        this.#full.delete(room)
        // If the room runs out during the loop, the remaining readers wait again.
        for (const reader of waiting) reader.resume()
      }
      if (this.#full.size > 0 && this.#cancelPoll === undefined) this.#poll()
    }, sessionLimits.roomPollMs)
  }
}
