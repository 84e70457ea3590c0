/**
 * Deadlines of a client.
 *
 * Owns: since when something is expected of the client. Does not own: what happens when it is overdue.
 * Law: the clock is read when `overdue` is called, about once a second, not for each packet. So each deadline is up to two seconds late.
 */
import { sessionLimits } from './limits.ts'

/** State of the connection. `now` is monotonic time in ms. */
export type ConnectionState = {
  readonly now: number
  /** Undefined before CONNECT. */
  readonly keepAliveSeconds: number | undefined
  /** The server does not read from it. */
  readonly isPaused: boolean
  /** The current packet is incomplete. */
  readonly isPartial: boolean
  readonly packetMsMax: number
}

/**
 * `connect`: no CONNECT. `unread`: the client does not read our packets. `silent`: no packet within the keep alive. `paused`: the same
 * while we do not read. `packet`: the rest of a packet is missing.
 */
export type Overdue = 'connect' | 'unread' | 'silent' | 'paused' | 'packet'

export class Deadlines {
  /** When the connection began. Later, the last call of `overdue` that found the client active. */
  #activeAt: number
  #wasActive = false
  #partialSince: number | undefined
  #unsentSince: number | undefined

  constructor(now: number) {
    this.#activeAt = now
  }

  /** Starts the keep alive after CONNECT was accepted. */
  opened(now: number): void {
    this.#activeAt = now
  }

  received(): void {
    this.#wasActive = true
  }

  /** Records that a packet is complete. A packet that is partial at the next call of `overdue` is a new one. */
  packetCompleted(): void {
    this.#partialSince = undefined
  }

  /** Records that too many bytes wait for the client to read them. */
  sendBlocked(now: number): void {
    this.#unsentSince ??= now
  }

  /** Records that the client has read all of them. */
  sendDrained(): void {
    this.#unsentSince = undefined
  }

  overdue({ now, keepAliveSeconds, isPaused, isPartial, packetMsMax }: ConnectionState): Overdue | undefined {
    if (keepAliveSeconds === undefined) return now - this.#activeAt > sessionLimits.connectTimeoutMs ? 'connect' : undefined
    if (this.#wasActive) this.#activeAt = now
    this.#wasActive = false
    // A packet that we do not read cannot become complete.
    this.#partialSince = isPartial && !isPaused ? (this.#partialSince ?? now) : undefined
    if (now - (this.#unsentSince ?? now) > sessionLimits.unsentMsMax) return 'unread'
    // [MQTT-3.1.2-22]
    if (now - this.#activeAt > keepAliveSeconds * 1500) return isPaused ? 'paused' : 'silent'
    return now - (this.#partialSince ?? now) > packetMsMax ? 'packet' : undefined
  }
}
