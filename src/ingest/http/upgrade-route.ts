import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { AppError } from '#errors.ts'

/** A path of the HTTP server on which a connection changes to another protocol. */
export interface UpgradeRoute {
  readonly path: string
  /** Error detail for ordinary requests: how to connect instead. */
  readonly hint: string
  /** Returns why this request cannot be upgraded now; undefined if it can. */
  problem(request: IncomingMessage): AppError | undefined
  /** Takes over the socket. `query` is what follows the `?`, `head` the first bytes of the new protocol. */
  accept(request: IncomingMessage, socket: Socket, head: Buffer, query: string): void
}
