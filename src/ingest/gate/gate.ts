/**
 * The only path from a protocol to the log.
 *
 * A protocol reads a client's credentials and route off the wire and calls `admit`. What it gets back is the only way to append: `Admitted`
 * for a request, and `AdmittedSession` for a connection that sends many records. It maps each `Outcome` to its own code.
 *
 * Owns: the order of the checks before the records arrive, and the outcome of a failure.
 * Does not own: the checks after that, the append and what is counted (admitted.ts, admitted-session.ts), credentials on the wire, bounds on
 * what one client may send.
 */
import { CopyError } from '#copies/copy-error.ts'
import { InvariantError } from '#lib/assert.ts'
import { Durations } from '#lib/durations.ts'
import { LogError } from '#log/log-error.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { Admitted } from './admitted.ts'
import type { GateContext, GateOptions } from './context.ts'
import { requireCopyStore } from './copied.ts'
import { type EndpointTable, requireAccepting } from './endpoint-table.ts'
import { gateLimits } from './limits.ts'
import { Rejection, requireLease, requirePlace, tryAgain } from './rejection.ts'
import { type KeySender, rethrowAsRejection, type Sender, verify } from './sender.ts'

/** Bounds of the durations until an acknowledgement, in seconds. */
const acknowledgementBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export class Gate {
  readonly #context: GateContext

  constructor(options: GateOptions) {
    this.#context = {
      ...options,
      acknowledgements: { http: new Durations(acknowledgementBounds), mqtt: new Durations(acknowledgementBounds) },
      rejectionOf: (error) => this.rejectionOf(error),
    }
  }

  get acknowledgements(): GateContext['acknowledgements'] {
    return this.#context.acknowledgements
  }

  /**
   * Admits a sender that may send now, and claims its connection for its account. Throws, or rejects with, Rejection, or an error that the
   * sender throws.
   */
  admit(sender: KeySender): Admitted
  admit(sender: Sender): Admitted | Promise<Admitted>
  admit(sender: Sender): Admitted | Promise<Admitted> {
    // Before the credentials: without a configuration no key is known.
    this.#requireConfiguration()
    const { authenticator } = this.#context
    const { revision } = authenticator
    const principal = verify(sender, authenticator)
    if (!(principal instanceof Promise)) return this.#admit(sender, principal, revision)
    return principal.then((verified) => this.#admit(sender, verified, revision), rethrowAsRejection)
  }

  /** Maps a failure to its outcome. Logs unexpected ones; a broken invariant ends the process. */
  rejectionOf(error: unknown): Rejection {
    if (error instanceof Rejection) return error
    if (error instanceof LogError && error.reason === 'unacknowledged')
      return new Rejection('failed', 'this node has just lost its place: the records may be delivered, or not; send them again', {
        cause: error,
      })
    if (error instanceof CopyError)
      return tryAgain(
        'not_copied',
        `the records are on the disk of this node alone, and may be delivered: ${error.message}; send them again`,
        gateLimits.retryStoreSeconds,
        { cause: error },
      )
    if (error instanceof LogError) {
      const reason =
        error.reason === 'disk_full' ? 'the disk of this node is full' : `the records could not be stored (${error.reason})`
      return tryAgain('not_stored', reason, gateLimits.retryStoreSeconds, { cause: error })
    }
    if (error instanceof InvariantError) {
      // Thrown outside the promise, which would swallow it.
      queueMicrotask(() => {
        throw error
      })
    }
    this.#context.logger.error({ err: error }, 'unexpected error in ingest')
    return new Rejection('failed', 'the request failed because of an internal error; send it again', {
      cause: error,
    })
  }

  /** Returns the reasons why this node does not accept data now; empty while it does. */
  notReadyReasons(): readonly string[] {
    const { configuration, fence, lease, rooms } = this.#context
    if (fence.reason !== undefined) return [fence.reason]
    const missing = configuration.endpoints === undefined ? 'no configuration yet' : lease.refusal
    return [...(missing === undefined ? [] : [missing]), ...rooms.reasons()]
  }

  #requireConfiguration(): EndpointTable {
    const { configuration, fence, lease } = this.#context
    requirePlace(fence)
    const { endpoints } = configuration
    if (endpoints !== undefined) {
      requireLease(lease)
      return endpoints
    }
    throw tryAgain(
      'not_configured',
      'this node has no configuration yet: control was never reached',
      gateLimits.retryStoreSeconds,
    )
  }

  #admit(sender: Sender, principal: KeyPrincipal, revision: number): Admitted {
    if (!principal.scopes.includes('ingest')) {
      throw new Rejection('forbidden', 'the key or token lacks the scope ingest; use one that has it')
    }
    const endpoint = this.#requireConfiguration().resolve(principal, sender)
    try {
      requireAccepting(endpoint)
      requireCopyStore(endpoint, this.#context.copies)
      this.#requireAllowance(endpoint)
      this.#context.keyUse.add(principal.key_id)
      this.#claim(sender, endpoint)
    } catch (error) {
      if (error instanceof Rejection) this.#context.counts.of(endpoint.id).refused(error.outcome)
      throw error
    }
    return new Admitted(this.#context, { sender, endpoint, keyId: principal.key_id, revision })
  }

  #requireAllowance({ account_id }: SnapshotEndpoint): void {
    const { allowances, clock } = this.#context
    const now = clock.now()
    const allowance = allowances.of(account_id)
    const exceeded = allowance.exceeded(now)
    if (exceeded === undefined) return
    allowances.countRefusal(exceeded)
    throw allowance.rejection(exceeded, now)
  }

  #claim(sender: Sender, { id, account_id }: SnapshotEndpoint): void {
    if (sender.replaces?.(id) === true) {
      sender.slot.force(account_id)
      return
    }
    const refusal = sender.slot.claim(account_id)
    if (refusal !== undefined) throw refusal
  }
}
