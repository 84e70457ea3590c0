/**
 * What a client must do in time.
 *
 * Owns: since when it owes what. Does not own: what becomes of it then.
 * Law: time is read when `late` is asked, about once a second, and not with each packet; so all of these end up to two seconds late.
 */
import { sessionLimits } from './limits.ts'

/** What stands now, monotonic time in ms. */
export type Look = {
  readonly now: number
  /** Undefined before CONNECT. */
  readonly keepAliveSeconds: number | undefined
  /** Nothing is read. */
  readonly isPaused: boolean
  /** A packet has begun that is not whole. */
  readonly isPartial: boolean
  readonly packetMsMax: number
}

/** CONNECT; answers that it doesn't read; a sign of life; the same while we don't read; the rest of a packet. */
export type Late = 'connect' | 'answers' | 'silent' | 'unread' | 'packet'

export class Deadlines {
  /** Of the beginning, later of the last look that found something new from the client. */
  #heardAt: number
  #wasHeard = false
  #partialSince: number | undefined
  #unsentSince: number | undefined

  constructor(now: number) {
    this.#heardAt = now
  }

  /** The time for CONNECT is over, that of the keep alive begins. */
  opened(now: number): void {
    this.#heardAt = now
  }

  /** Something came. */
  heard(): void {
    this.#wasHeard = true
  }

  /** A packet is whole: what is partial at the next look is another one. */
  took(): void {
    this.#partialSince = undefined
  }

  /** Too much of what was written waits for the client. */
  unsent(now: number): void {
    this.#unsentSince ??= now
  }

  /** It has taken all of it. */
  drained(): void {
    this.#unsentSince = undefined
  }

  late({ now, keepAliveSeconds, isPaused, isPartial, packetMsMax }: Look): Late | undefined {
    if (keepAliveSeconds === undefined) return now - this.#heardAt > sessionLimits.connectTimeoutMs ? 'connect' : undefined
    if (this.#wasHeard) this.#heardAt = now
    this.#wasHeard = false
    // What we don't read can't get whole.
    this.#partialSince = isPartial && !isPaused ? (this.#partialSince ?? now) : undefined
    if (now - (this.#unsentSince ?? now) > sessionLimits.unsentMsMax) return 'answers'
    // [MQTT-3.1.2-22]
    if (now - this.#heardAt > keepAliveSeconds * 1500) return isPaused ? 'unread' : 'silent'
    return now - (this.#partialSince ?? now) > packetMsMax ? 'packet' : undefined
  }
}
