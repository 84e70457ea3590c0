/**
 * All MQTT connections of a node.
 *
 * Owns: who is connected where, taking over, and that nothing is read while there is no room. Does not own: a connection.
 * Law: an endpoint has one open connection per client id [MQTT-3.1.4-3]; what is closing is not among them.
 */
import { AppError } from '#errors.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { Route, Terms } from './connect.ts'
import { sessionLimits } from './limits.ts'
import { RefusalLog } from './refusal-log.ts'
import { type Broker, Session } from './session.ts'
import type { Wire } from './wire.ts'

/** What is asked of the rest of the node. */
export type SessionsOptions = Pick<Broker, 'verifyKey' | 'endpoints' | 'append' | 'packetMsMax' | 'counters'> & {
  readonly memory: {
    /** Takes the bytes even if that is more than there may be: what was read must go somewhere. */
    take(bytes: number): void
    /** Takes them, or throws AppError. */
    reserve(bytes: number): void
    release(bytes: number): void
    /** Why nothing more should be read now, or undefined. */
    noRoomBecause(): string | undefined
  }
  readonly clock: Clock
  readonly logger: Logger
}

export class Sessions {
  readonly #options: SessionsOptions
  readonly #broker: Broker
  readonly #all = new Set<Session>()
  /** Open ones, by endpoint and client id. */
  readonly #open = new Map<string, Map<string, Session>>()
  #openCount = 0
  #hasRoom = true
  /** Those that have something unread, in the order in which they are to go on. */
  readonly #waiting = new Set<Session>()
  #isDraining = false
  #drained = Promise.withResolvers<void>()
  #cancelSweep = (): void => undefined
  #cancelRoom = (): void => undefined

  constructor(options: SessionsOptions) {
    this.#options = options
    const { memory, logger, ...rest } = options
    this.#broker = {
      ...rest,
      refusals: new RefusalLog({ clock: options.clock, logger }),
      closedBecause: () => (this.#isDraining ? 'this node is shutting down; connect again' : memory.noRoomBecause()),
      connections: (endpointId, butClientId) => this.#connections(endpointId, butClientId),
      take: (bytes) => {
        memory.take(bytes)
        this.#checkRoom()
      },
      reserve: (bytes) => this.#reserve(bytes),
      hasRoom: () => this.#hasRoom,
      awaitRoom: (session) => this.#waiting.add(session),
      release: (bytes) => memory.release(bytes),
      opened: (session, terms) => this.#opened(session, terms),
      left: (session) => this.#left(session),
      over: (session) => this.#over(session),
    }
    this.#sweep()
  }

  /** Those that are open. */
  get connections(): number {
    return this.#openCount
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** A new connection. The wire's events go to the session. */
  open(wire: Wire, route: Route): Session {
    const session = new Session(this.#broker, wire, route)
    if (this.#isDraining) session.cut()
    else this.#all.add(session)
    return session
  }

  /** Ends the connections of endpoints that take nothing more over MQTT. Other changes apply to the next CONNECT. */
  apply(endpoints: readonly SnapshotEndpoint[]): void {
    const takes = new Set(
      endpoints
        .filter(({ desired_state, mqtt_config }) => desired_state === 'active' && mqtt_config?.enabled === true)
        .map(({ id }) => id),
    )
    for (const [endpointId, sessions] of this.#open) {
      if (takes.has(endpointId)) continue
      for (const session of sessions.values()) {
        session.end('administrative_action', 'the endpoint is paused or deleted, or its MQTT disabled')
      }
    }
  }

  /** Lets what came become durable, then closes all. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true
    for (const session of this.#all) session.drain()
    if (this.#all.size === 0) this.#drained.resolve()
    const giveUp = () => {
      for (const session of this.#all) session.cut()
    }
    const cancel = this.#options.clock.setTimer(giveUp, sessionLimits.drainMs)
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
    await this.#drained.promise
    signal.removeEventListener('abort', giveUp)
    cancel()
    this.#cancelSweep()
    this.#cancelRoom()
  }

  #connections(endpointId: string, butClientId: string): number {
    const sessions = this.#open.get(endpointId)
    if (sessions === undefined) return 0
    return sessions.size - (sessions.has(butClientId) ? 1 : 0)
  }

  #opened(session: Session, { endpointId, clientId }: Terms): void {
    // First, since the last one of an endpoint takes the endpoint's map with it.
    this.#open.get(endpointId)?.get(clientId)?.end('session_taken_over', 'another connection came with the same client id')
    let sessions = this.#open.get(endpointId)
    if (sessions === undefined) {
      sessions = new Map()
      this.#open.set(endpointId, sessions)
    }
    sessions.set(clientId, session)
    this.#openCount += 1
  }

  /** It is closing: its client id is free. */
  #left(session: Session): void {
    const { terms } = session
    if (terms === undefined) return
    const { endpointId, clientId } = terms
    const sessions = this.#open.get(endpointId)
    if (sessions?.get(clientId) !== session) return
    sessions.delete(clientId)
    this.#openCount -= 1
    if (sessions.size === 0) this.#open.delete(endpointId)
  }

  #over(session: Session): void {
    this.#all.delete(session)
    this.#waiting.delete(session)
    if (this.#isDraining && this.#all.size === 0) this.#drained.resolve()
  }

  #reserve(bytes: number): boolean {
    try {
      this.#options.memory.reserve(bytes)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return false
    }
    this.#checkRoom()
    return true
  }

  #checkRoom(): void {
    if (this.#hasRoom && this.#options.memory.noRoomBecause() !== undefined) this.#lackRoom()
  }

  #lackRoom(): void {
    const { memory, clock } = this.#options
    this.#hasRoom = false
    const ask = () => {
      this.#cancelRoom = clock.setTimer(() => {
        if (memory.noRoomBecause() !== undefined) {
          ask()
          return
        }
        this.#hasRoom = true
        const waiting = [...this.#waiting]
        this.#waiting.clear()
        // Should the room be used up on the way, the rest wait again.
        for (const session of waiting) session.goOn()
      }, sessionLimits.roomPollMs)
    }
    ask()
  }

  #sweep(): void {
    const { clock } = this.#options
    this.#cancelSweep = clock.setTimer(() => {
      const now = clock.monotonic()
      for (const session of this.#all) session.sweep(now)
      // A disk that fills up is noticed before somebody sends.
      this.#checkRoom()
      this.#sweep()
    }, sessionLimits.sweepMs)
  }
}
