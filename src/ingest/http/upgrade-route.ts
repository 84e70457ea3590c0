import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { AppError } from '#errors.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'

export type Upgraded = {
  readonly socket: Socket
  readonly slot: ConnectionSlot
  /** The first bytes of the new protocol. */
  readonly head: Buffer
  /** Query string after the `?`. */
  readonly query: string
}

/** A path of the HTTP server on which a connection changes to another protocol. */
export interface UpgradeRoute {
  readonly path: string
  /** Error detail for ordinary requests: how to connect instead. */
  readonly hint: string
  /** Names and values, sent with each problem. */
  readonly problemHeaders: readonly string[]
  /** Returns why this request cannot be upgraded now; undefined if it can. */
  problem(request: IncomingMessage): AppError | undefined
  /** Responds with 101. Takes over the socket, and from then on the time that its client has to authenticate. */
  accept(request: IncomingMessage, upgraded: Upgraded): void
}
