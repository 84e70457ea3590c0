/**
 * All MQTT connections of a node.
 *
 * Owns: the connected clients by endpoint and client id, takeover, shutdown. Does not own: a single connection.
 * Law: an endpoint has one open connection per client id [MQTT-3.1.4-3]; connections that are closing do not count.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { Periodic } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Route } from '../gate/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import { Backpressure } from './backpressure.ts'
import { ClientErrorLog } from './client-error-log.ts'
import { Connection, type ConnectionContext } from './connection.ts'
import { sessionLimits } from './limits.ts'
import type { MqttCounters } from './metrics.ts'
import type { Session } from './session.ts'
import type { Wire } from './wire/wire.ts'

export type SessionsOptions = {
  readonly gate: Pick<Gate, 'admit'>
  /** Time for a packet to arrive completely. */
  readonly packetMsMax: number
  readonly counters: MqttCounters
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export class Sessions {
  readonly #clock: Clock
  readonly #context: ConnectionContext
  readonly #backpressure: Backpressure
  readonly #sweeps: Periodic
  readonly #all = new Set<Connection>()
  /** Open sessions by endpoint and client id. */
  readonly #open = new Map<string, Map<string, Session>>()
  #openCount = 0
  #isDraining = false
  readonly #drained = Promise.withResolvers<void>()

  constructor({ gate, packetMsMax, counters, clock, random, logger }: SessionsOptions) {
    this.#clock = clock
    this.#backpressure = new Backpressure({ clock })
    this.#sweeps = new Periodic({
      name: 'mqtt sweep',
      intervalMs: sessionLimits.sweepMs,
      run: () => this.#sweep(),
      failure: 'MQTT sweep failed',
      clock,
      logger,
    })
    this.#context = {
      gate,
      backpressure: this.#backpressure,
      packetMsMax,
      counters,
      clock,
      random,
      clientErrors: new ClientErrorLog({ clock, logger }),
      refusalReason: () => (this.#isDraining ? 'this node is shutting down; connect again' : undefined),
      countConnections: (endpointId, exceptClientId) => this.#count(endpointId, exceptClientId),
      isConnected: (endpointId, clientId) => this.#open.get(endpointId)?.has(clientId) === true,
      onOpen: (session) => this.#onOpen(session),
      onLeave: (session) => this.#onLeave(session),
      onClosed: (connection) => this.#onClosed(connection),
    }
  }

  /** Number of open sessions. */
  get connections(): number {
    return this.#openCount
  }

  /** Returns the key of each open session. */
  *keyIds(): Iterable<string> {
    for (const sessions of this.#open.values()) for (const { admitted } of sessions.values()) yield admitted.keyId
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  start(): Promise<void> {
    return this.#sweeps.start()
  }

  /** Takes a new connection. The caller passes the wire's events to it. */
  open(wire: Wire, route: Route, slot: ConnectionSlot): Connection {
    const connection = new Connection(this.#context, { wire, route, slot })
    if (this.#isDraining) connection.cut()
    else this.#all.add(connection)
    return connection
  }

  /** Ends the sessions that the newest configuration does not allow. */
  recheck(): void {
    for (const sessions of this.#open.values()) for (const session of sessions.values()) session.recheck()
  }

  /** Ends the sessions that are open now, some at a time, so that their clients do not all connect elsewhere at once. */
  async endInTurns(withinMs: number): Promise<void> {
    const { endTurnMs } = sessionLimits
    const connections = [...this.#all].filter(({ session }) => session !== undefined)
    const perTurn = Math.ceil((connections.length * endTurnMs) / withinMs)
    for (let waitedMs = 0; waitedMs < withinMs; waitedMs += endTurnMs) {
      for (const connection of connections.splice(0, perTurn)) connection.drain()
      await sleep(this.#clock, endTurnMs)
    }
  }

  /** Waits until all received messages are durable, then closes all connections. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true
    for (const connection of this.#all) connection.drain()
    if (this.#all.size === 0) this.#drained.resolve()
    const cutAll = () => {
      for (const connection of this.#all) connection.cut()
    }
    const cancel = this.#clock.setTimer(cutAll, sessionLimits.drainMs)
    if (signal.aborted) cutAll()
    else signal.addEventListener('abort', cutAll, { once: true })
    await this.#drained.promise
    signal.removeEventListener('abort', cutAll)
    cancel()
    await this.#sweeps.stop()
    this.#backpressure.stop()
  }

  #count(endpointId: string, exceptClientId: string): number {
    const sessions = this.#open.get(endpointId)
    if (sessions === undefined) return 0
    return sessions.size - (sessions.has(exceptClientId) ? 1 : 0)
  }

  #onOpen(session: Session): void {
    const { endpointId, clientId } = session.terms
    // Must run before the lookup below: the last session of an endpoint removes the endpoint's map.
    this.#open.get(endpointId)?.get(clientId)?.connection.end('session_taken_over', 'another connection uses the same client id')
    let sessions = this.#open.get(endpointId)
    if (sessions === undefined) {
      sessions = new Map()
      this.#open.set(endpointId, sessions)
    }
    sessions.set(clientId, session)
    this.#openCount += 1
  }

  #onLeave(session: Session): void {
    const { endpointId, clientId } = session.terms
    const sessions = this.#open.get(endpointId)
    if (sessions?.get(clientId) !== session) return
    sessions.delete(clientId)
    this.#openCount -= 1
    if (sessions.size > 0) return
    this.#open.delete(endpointId)
    this.#backpressure.forgetRoom(session.admitted.room)
  }

  #onClosed(connection: Connection): void {
    this.#all.delete(connection)
    if (this.#isDraining && this.#all.size === 0) this.#drained.resolve()
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    for (const connection of this.#all) connection.sweep(now)
    // Notices a full disk before a client sends.
    for (const sessions of this.#open.values()) {
      const [session] = sessions.values()
      if (session !== undefined) this.#backpressure.check(session.admitted.room)
    }
  }
}
