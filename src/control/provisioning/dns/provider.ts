/**
 * The interface to a service that publishes DNS records.
 *
 * Law: `apply` resolves once the service has confirmed every change, and a repeated change has the same result. After a failure each set has
 * its values from before or its new ones, never a part of them.
 */

/** The records of one type at a name: `values` replace all that are there, and none removes the set. */
export type RecordChange = {
  /** Without a dot at its end. */
  readonly name: string
  readonly type: 'A' | 'AAAA' | 'TXT'
  /** Addresses, or texts of at most 255 bytes without quotes. */
  readonly values: readonly string[]
  /** Seconds for which resolvers may keep the set. */
  readonly ttl: number
}

export interface DnsProvider {
  /** Names the service and the account or zone there. What was published elsewhere has to be published again. */
  readonly target: string
  /** How long a call of `apply` with a hundred changes may take. */
  readonly applyTimeoutMs: number
  /** How long the service may take to show a confirmed change on all its servers. */
  readonly settleSeconds: number
  /** Waits for its turn where the service limits the rate. Throws RecordsRejected, or another error if later attempts may succeed. */
  apply(changes: readonly RecordChange[], signal: AbortSignal): Promise<void>
  /** Closes idle connections. */
  close(): void
}

/** The service refuses at least one of the changes, whenever they are repeated, but may accept the others. */
export class RecordsRejected extends Error {
  override readonly name = 'RecordsRejected'
}
