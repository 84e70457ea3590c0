/**
 * The only path from a protocol to the log.
 *
 * A protocol decodes its wire format, gets a principal from the authenticator, calls `open` to get the endpoint, appends frames, and
 * maps each `Outcome` to its own code.
 *
 * Owns: the checks of scope, endpoint, quotas and room, the append, and the outcome of a failure.
 * Does not own: credentials on the wire, connections, acknowledgements, bounds on what one client may send.
 * Law: `append` resolves after fdatasync; until then nothing may be acknowledged (law 1).
 */
import type { KeyUse } from '#auth/key-use.ts'
import { InvariantError } from '#lib/assert.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { FrameInput } from '#log/frame.ts'
import { LogError } from '#log/log-error.ts'
import type { Appended, LogWriter } from '#log/log-writer.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import type { Allowance, NodeQuota } from './allowance.ts'
import type { Allowances } from './allowances.ts'
import type { EndpointCounters, EndpointCounts } from './endpoint-counters.ts'
import { type EndpointTable, type Route, requireAccepting } from './endpoint-table.ts'
import { gateLimits } from './limits.ts'
import type { Capacity, Room } from './node-room.ts'
import type { RequestMemory, Stored } from './receipt.ts'
import { Rejection, tryAgain } from './rejection.ts'

export type GateOptions = {
  /** `endpoints` is undefined until the first snapshot. */
  readonly configuration: { readonly endpoints: EndpointTable | undefined }
  readonly capacity: Capacity
  readonly allowances: Pick<Allowances, 'of' | 'countRefusal'>
  readonly keyUse: Pick<KeyUse, 'add'>
  readonly counts: Pick<EndpointCounts, 'of'>
  readonly wal: Pick<LogWriter, 'append' | 'whenRecovered'>
  readonly storedRequests: RequestMemory
  readonly clock: Clock
  readonly logger: Logger
}

export class Gate {
  readonly #capacity: Capacity
  readonly #configuration: GateOptions['configuration']
  readonly #allowances: GateOptions['allowances']
  readonly #keyUse: GateOptions['keyUse']
  readonly #counts: GateOptions['counts']
  readonly #wal: GateOptions['wal']
  readonly #storedRequests: GateOptions['storedRequests']
  readonly #clock: Clock
  readonly #logger: Logger

  constructor({ configuration, capacity, allowances, keyUse, counts, wal, storedRequests, clock, logger }: GateOptions) {
    this.#capacity = capacity
    this.#configuration = configuration
    this.#allowances = allowances
    this.#keyUse = keyUse
    this.#counts = counts
    this.#wal = wal
    this.#storedRequests = storedRequests
    this.#clock = clock
    this.#logger = logger
  }

  /** Throws Rejection. Call it before checking credentials: without a configuration no key is known. */
  requireConfiguration(): EndpointTable {
    const { endpoints } = this.#configuration
    if (endpoints !== undefined) return endpoints
    throw tryAgain(
      'not_configured',
      'this node has no configuration yet: control was never reached',
      gateLimits.retryStoreSeconds,
    )
  }

  /** Returns the endpoint that the principal may send to. Throws Rejection, or an error that `route` throws. */
  open(principal: KeyPrincipal, route: Route): SnapshotEndpoint {
    const endpoints = this.requireConfiguration()
    if (!principal.scopes.includes('ingest')) {
      throw new Rejection('forbidden', 'the key or token lacks the scope ingest; use one that has it')
    }
    const endpoint = endpoints.resolve(principal, route)
    try {
      requireAccepting(endpoint)
      const now = this.#clock.now()
      const allowance = this.allowance(endpoint.account_id)
      const exceeded = allowance.exceeded(now)
      if (exceeded !== undefined) throw this.exceeded(allowance, exceeded, now)
    } catch (error) {
      if (error instanceof Rejection) this.counters(endpoint.id).refused(error.outcome)
      throw error
    }
    this.#keyUse.add(principal.key_id)
    return endpoint
  }

  /** Returns what the endpoint counts, for the moment: do not keep it. Refusals of `open` are counted there. */
  counters(endpointId: string): EndpointCounters {
    return this.#counts.of(endpointId)
  }

  /** Returns what the account of an endpoint may still send. */
  allowance(accountId: string): Allowance {
    return this.#allowances.of(accountId)
  }

  /** Takes records from what the account may send. Throws Rejection. */
  spend(allowance: Allowance, records: number, nowMs: number): void {
    const exceeded = allowance.take(records, nowMs)
    if (exceeded !== undefined) throw this.exceeded(allowance, exceeded, nowMs)
  }

  /** Counts a refusal, and returns the reason for it. */
  exceeded(allowance: Allowance, quota: NodeQuota, nowMs: number): Rejection {
    this.countRefusal(quota)
    return allowance.rejection(quota, nowMs)
  }

  countRefusal(quota: NodeQuota): void {
    this.#allowances.countRefusal(quota)
  }

  /** Checks the endpoint again for records that took time to arrive after `open`. Throws Rejection. */
  recheck(endpoint: SnapshotEndpoint): void {
    this.requireConfiguration().recheck(endpoint)
  }

  /** Returns the memory and disk that the endpoint may use. It stays the same object while the endpoint is known. */
  room(endpointId: string): Room {
    return this.#capacity.room(endpointId)
  }

  /**
   * Resolves with the segment's seq once the frame is durable. Frames that become durable together share one promise. If it
   * rejects, the frame must not be acknowledged; `rejectionOf` returns the reason.
   */
  append(endpointId: string, frame: FrameInput): Promise<Appended> {
    return this.#wal.append(endpointId, frame)
  }

  /**
   * Appends the frame of a request that its sender may repeat, unless it was stored before. `spend` is called before the append, and may
   * throw, and `onAppended` with its outcome. Rejects like `append`.
   */
  async appendOnce(
    endpointId: string,
    key: string,
    frame: FrameInput,
    spend?: () => void,
    onAppended?: (appended: Appended) => void,
  ): Promise<Stored> {
    // After a crash, keys are in the frames that it left.
    await this.#wal.whenRecovered(endpointId)
    return await this.#storedRequests.once(endpointId, key, frame, async () => {
      spend?.()
      const appended = await this.append(endpointId, frame)
      onAppended?.(appended)
      return appended
    })
  }

  /** Maps a failure to its outcome. Logs unexpected ones; a broken invariant ends the process. */
  rejectionOf(error: unknown): Rejection {
    if (error instanceof Rejection) return error
    if (error instanceof LogError) {
      const reason =
        error.reason === 'disk_full' ? 'the disk of this node is full' : `the records could not be stored (${error.reason})`
      return tryAgain('not_stored', reason, gateLimits.retryStoreSeconds, error)
    }
    if (error instanceof InvariantError) {
      // Thrown outside the promise, which would swallow it.
      queueMicrotask(() => {
        throw error
      })
    }
    this.#logger.error({ err: error }, 'unexpected error in ingest')
    return new Rejection('failed', 'the request failed because of an internal error; send it again', {
      cause: error,
    })
  }

  /** Returns the reasons why this node does not accept data now; empty while it does. */
  notReadyReasons(): readonly string[] {
    return [...(this.#configuration.endpoints === undefined ? ['no configuration yet'] : []), ...this.#capacity.reasons()]
  }
}
