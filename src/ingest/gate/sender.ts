import { AppError } from '#errors.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { Authenticator } from './authenticator.ts'
import type { Remote } from './client-addresses.ts'
import type { ConnectionSlot } from './connection-budget.ts'
import type { Route } from './endpoint-table.ts'
import { Rejection } from './rejection.ts'

/** The protocols, as metrics name them. */
export const protocols = ['http', 'mqtt'] as const
export type Protocol = (typeof protocols)[number]

export type Verifier = Pick<Authenticator, 'verifyKey' | 'verifyUrlKey' | 'verifyToken'>

/** A client that asks to send, as its protocol reads it off the wire. */
export interface Sender extends Route {
  readonly protocol: Protocol
  /** The place of its connection, which the gate claims for the account. */
  readonly slot: Pick<ConnectionSlot, 'claim' | 'force'>
  /** Read only if its endpoint keeps the address of clients. Of a session, also after a change of the configuration. */
  readonly remote: Remote
  /** Verifies its credentials: synchronously for an API key, because the hot path avoids promises. Asked again if they may have changed. */
  authenticate(verifier: Verifier): KeyPrincipal | Promise<KeyPrincipal>
  /** Whether its connection replaces another one to this endpoint. Its place is then not refused. */
  replaces?(endpointId: string): boolean
}

/** A sender with an API key, which is verified at once. */
export interface KeySender extends Sender {
  authenticate(verifier: Verifier): KeyPrincipal
}

/** Throws Rejection. A promise rejects with what `rethrowAsRejection` takes. */
export function verify(sender: Sender, verifier: Verifier): KeyPrincipal | Promise<KeyPrincipal> {
  try {
    return sender.authenticate(verifier)
  } catch (error) {
    return rethrowAsRejection(error)
  }
}

export function rethrowAsRejection(error: unknown): never {
  if (!(error instanceof AppError) || error.code !== 'unauthorized') throw error
  throw new Rejection('unauthorized', error.message, { cause: error })
}
